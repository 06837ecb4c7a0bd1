"""The rows, one module a suite; each module's `rows()` returns its rows in the order they are printed."""
