"""Networks: a backbone turns inputs into features, a head turns features into the outputs of a method."""
