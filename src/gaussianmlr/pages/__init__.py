"""The web pages and the server: FastAPI, plain HTML, CSS and ES modules; nothing is loaded from outside."""
