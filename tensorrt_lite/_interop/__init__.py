"""How other libraries get to know tensors: DLPack, einops, notebooks."""
