"""The documentation site: `pages` copies docs, `reference` writes the API reference from docstrings and rows, `__main__` has mkdocs build both."""
