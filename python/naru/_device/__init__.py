"""The Python side of devices: selection, kinds and their namespaces, memory, synchronizations, virtual devices."""
