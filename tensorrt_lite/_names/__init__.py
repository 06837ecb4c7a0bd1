"""Names of PyTorch's that are here, and what is said of those that are not."""
