"""Functions and classes of the root module that are no operators. Each module is imported on first use."""
