"""Typed storages and tensors, and the functions and methods that PyTorch has deprecated or removed."""
