"""Subcommands of `tensorrt-lite`."""
