"""naru in notebooks: the IPython extension, the Jupyter kernel in which `torch` is naru, and HTML display of tensors."""
