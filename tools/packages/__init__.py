"""Published packages that depend on PyTorch, under both libraries."""
