"""Every public name of PyTorch's modules beside this package's: which there are (`surface`), a call of each in both libraries (`database`, `written`), and
the comparison of results and signatures (`compare`, `signatures`). `python -m tools.name_report` writes docs/names.md of it."""
