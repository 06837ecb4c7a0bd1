"""torch.testing._internal: what programs name of PyTorch's own tests."""
