"""Web applications: `serve`, `play` and `annotate`, and what they share in `web`."""
