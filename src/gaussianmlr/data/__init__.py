"""Data: handwritten digits and the Ranked MNIST family made from them."""
