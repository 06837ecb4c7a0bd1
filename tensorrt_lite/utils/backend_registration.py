"""torch.utils.backend_registration: names for a custom device."""

from tensorrt_lite.backend.privateuse1 import generate_methods_for_privateuse1_backend, rename_privateuse1_backend

__all__ = ["generate_methods_for_privateuse1_backend", "rename_privateuse1_backend"]
