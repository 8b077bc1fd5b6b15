"""naru in notebooks: the extension of IPython, the Jupyter kernel in which `torch` is naru, and tensors as HTML."""
