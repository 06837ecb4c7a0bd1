"""The generator: declarations (cysrc/ops/*/*.yaml) in, entries, dispatch, loops, Nodes, stubs and documentation out."""
