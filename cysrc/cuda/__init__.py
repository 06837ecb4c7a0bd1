"""The CUDA runtime: driver, allocator, launch. No kernel text lives here; that is cuda_src."""
