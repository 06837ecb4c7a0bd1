"""Puts the objects that ask overrides (`_C.core.overrides`) in front of functions: by them operators become public.

What overrides get depends on the manner of PyTorch's function of the same name: `BY_NAME` lists those that are written in
Python there and compiled here.
"""

from __future__ import annotations

from tensorrt_lite._C.core.overrides import AS_CALLED, BY_NAME, PublicFunction

TYPE_CHECKING = False  # `typing` and what it imports would be a quarter of the package's import time
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

# Functions of the package and methods that PyTorch has in Python.
BY_NAME_FUNCTIONS = {
    "atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_tensors", "cartesian_prod", "cdist", "chain_matmul", "einsum", "lobpcg", "lu",
    "meshgrid", "norm", "pca_lowrank", "split", "stft", "svd_lowrank", "tensordot", "unique", "unique_consecutive", "unravel_index",
}  # fmt: skip
BY_NAME_METHODS = {
    "dim_order", "is_shared", "istft", "lu", "norm", "register_hook", "register_post_accumulate_grad_hook", "split", "stft", "unflatten", "unique",
    "unique_consecutive",
}  # fmt: skip
# Their lists are data: a sequence of a million numbers is not searched for objects that override.
OPAQUE = {"tensor", "as_tensor", "asarray", "new_tensor", "scalar_tensor", "new"}

# They make tensors out of none, or like their first argument.
FACTORIES = {
    "arange", "as_tensor", "asarray", "bartlett_window", "blackman_window", "empty", "empty_like", "empty_permuted", "empty_strided", "eye", "frombuffer",
    "from_numpy", "full", "full_like", "hamming_window", "hann_window", "kaiser_window", "linspace", "logspace", "new_empty", "new_empty_strided", "new_full",
    "new_ones", "new_tensor", "new_zeros", "ones", "ones_like", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm", "range",
    "scalar_tensor", "tensor", "tril_indices", "triu_indices", "zeros", "zeros_like",
}  # fmt: skip

# {name: {keyword of PyTorch's: the argument here, or "*" for what stands for all positional arguments}}
_SECTIONS = {"sections": "indices_or_sections", "indices": "indices_or_sections", "tensor_indices_or_sections": "indices_or_sections"}
_MATRIX = {"input": "A"}
SPELLINGS = {
    "permute": {"dims": "*"}, "reshape": {"shape": "*"}, "tile": {"dims": "*"}, "expand": {"size": "*"}, "repeat": {"repeats": "*"}, "view": {"size": "*"},
    "resize_": {"size": "*"}, "sum_to_size": {"size": "*"}, "new_empty": {"size": "*"}, "new_ones": {"size": "*"}, "new_zeros": {"size": "*"},
    "expand_copy": {"size": "*"}, "permute_copy": {"dims": "*"}, "view_copy": {"size": "*"}, "to": {"other": "*"},
    "swapdims": {"dim0": "axis0", "dim1": "axis1"}, "swapdims_": {"dim0": "axis0", "dim1": "axis1"}, "tensor_split": _SECTIONS, "hsplit": _SECTIONS,
    "vsplit": _SECTIONS, "dsplit": _SECTIONS, "resize_as_": {"the_template": "other"}, "lu_solve": {"input": "b"}, "triangular_solve": {"input": "b"},
    "__rpow__": {"other": "base"}, "split": {"split_size": "split_size_or_sections"}, "one_hot": {"input": "tensor"}, "record_stream": {"s": "stream"},
    "result_type": {"tensor": "tensor1", "scalar": "tensor1", "scalar1": "tensor1", "other": "tensor2", "scalar2": "tensor2"},
}  # fmt: skip
SPELLINGS_OF_LINALG = {
    **dict.fromkeys(("cond", "eig", "eigh", "eigvals", "eigvalsh", "matrix_exp", "matrix_norm", "matrix_rank", "norm", "pinv", "tensorinv"), _MATRIX),
    "lstsq": {"input": "A", "b": "B"}, "tensorsolve": {"input": "A", "other": "B"}, "vector_norm": {"input": "x"},
}  # fmt: skip


def function(impl: Callable[..., Any], name: str, module: str, by_name: bool = False) -> PublicFunction:
    """A public function of a module; one that is public already stays as it is."""
    if isinstance(impl, PublicFunction):
        return impl
    spellings = (SPELLINGS_OF_LINALG if module == "tensorrt_lite.linalg" else SPELLINGS).get(name)
    return PublicFunction(impl, name, module, manner=BY_NAME if by_name else AS_CALLED, opaque=name in OPAQUE, spellings=spellings, factory=name in FACTORIES and module == "tensorrt_lite")


def functions(table: dict[str, Callable[..., Any]], module: str) -> dict[str, PublicFunction]:
    """The public functions of a module over those of a table."""
    return {name: function(impl, name, module, name in BY_NAME_FUNCTIONS) for name, impl in table.items()}


def method(impl: Callable[..., Any], name: str, owner: type, by_name: bool = False) -> PublicFunction:
    """A public method of a class."""
    manner = BY_NAME if by_name or name in BY_NAME_METHODS else AS_CALLED
    return PublicFunction(impl, name, owner, manner=manner, opaque=name in OPAQUE, spellings=SPELLINGS.get(name), factory=name in FACTORIES)


def signature_of(impl: Callable[..., Any], name: str, method: bool, spellings: dict[str, str] | None) -> Any:
    """The signature of a public function; the module that computes it is imported by the first that is asked for."""
    from tensorrt_lite._signatures import signature_of

    return signature_of(impl, name, method, spellings)


def publish(namespace: dict[str, Any], names: Iterable[str], compiled: Iterable[str] = ()) -> None:
    """Make a module's functions of these names public in place. `compiled` are those that PyTorch has compiled."""
    for name in names:
        impl = namespace.get(name)
        if callable(impl) and not isinstance(impl, (type, PublicFunction)):
            namespace[name] = function(impl, name, namespace["__name__"], name not in compiled)
