"""torch.utils._triton: there is no Triton, and its questions say so."""

from __future__ import annotations


def has_triton() -> bool:
    """False."""
    return False


has_triton_package = has_triton_tma = has_triton_tma_device = has_triton_stable_tma_api = has_triton
has_triton_experimental_host_tma = has_triton_tensor_descriptor_host_tma = has_datacenter_blackwell_tma_device = has_triton


def get_triton_version(fallback: tuple[int, int] = (0, 0)) -> tuple[int, int]:
    """The fallback."""
    return fallback
