"""The board of conformance: every sample of PyTorch's own OpInfo database, beside PyTorch. `./run conformance` writes docs/conformance.md."""
