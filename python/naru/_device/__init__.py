"""Devices as Python sees them: choosing one, kinds and their namespaces, memory, synchronizations, virtual ones."""
