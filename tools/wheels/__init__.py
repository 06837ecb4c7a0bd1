"""Builds the distributions and tries them: `python -m tools.wheels` (see __main__.py)."""
