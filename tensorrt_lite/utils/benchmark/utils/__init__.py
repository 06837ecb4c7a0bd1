"""Parts of the benchmark tools, under the names of PyTorch's modules."""
