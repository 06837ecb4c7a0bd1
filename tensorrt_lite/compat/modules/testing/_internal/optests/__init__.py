"""torch.testing._internal.optests: tests of operators."""
