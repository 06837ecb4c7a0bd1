"""Private names of torch.utils."""
