"""torch.testing: its private modules."""
