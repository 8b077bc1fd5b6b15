"""The conformance board: compares every sample of PyTorch's OpInfo database with PyTorch. `./run conformance` writes docs/conformance.md."""
