"""How objects become PyTorch's files and back. `naru.serialization` is the face of it."""
