"""Reading and writing PyTorch's file formats. `naru.serialization` is the public module."""
