"""The larger commands of `gmlr`, one module each: parse, call, print."""
