"""Helpers of data pipes."""
