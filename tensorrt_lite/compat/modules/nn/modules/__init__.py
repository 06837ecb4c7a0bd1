"""Private names of torch.nn.modules."""
