"""PyTorch's package for the class of nested tensors, whose name is used in files and programs."""
