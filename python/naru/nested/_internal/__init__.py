"""Where PyTorch keeps the class of nested tensors, which files and programs name."""
