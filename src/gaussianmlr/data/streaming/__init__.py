"""Data that is larger than memory: read once into shards on disk, and from there in bounded memory."""
