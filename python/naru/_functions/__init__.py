"""Functions of the namespace `torch` that are written in Python."""
