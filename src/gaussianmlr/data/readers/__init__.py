"""Readers: tables, manifests, pictures, NSID and AVDP."""
