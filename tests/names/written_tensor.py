"""Calls of Tensor's methods and attributes that the operators' database does not know. A case gets the method or attribute of the class."""

from __future__ import annotations

from typing import Any

from .written import case, numbers, raised


def value(attribute: Any, tensor: Any) -> Any:
    """What an attribute of the class is on a tensor."""
    return attribute.__get__(tensor)


def times_ten(p: Any) -> None:
    """A hook on what was accumulated."""
    p.grad.mul_(10)


def tensors(m: Any) -> list[Any]:
    return [m.ones(2, 3), m.arange(4).reshape(2, 2).t(), numbers(m, 3, grad=True), m.ones(1, dtype=m.complex64), numbers(m, 2, grad=True) * 2, m.empty(2, device="meta")]


case("Tensor", """is_cpu is_cuda is_ipu is_maia is_meta is_mkldnn is_mps is_mtia is_nested is_quantized is_sparse is_sparse_csr is_vulkan is_xla is_xpu is_leaf requires_grad
     itemsize nbytes ndim shape dtype device layout output_nr retains_grad name volatile""", lambda m, f: [value(f, x) for x in tensors(m)])  # fmt: skip
case("Tensor", """dim ndimension nelement numel element_size get_device is_complex is_conj is_contiguous is_distributed is_floating_point is_inference is_neg is_pinned
     is_shared is_signed size stride storage_offset type""", lambda m, f: [f(x) for x in tensors(m)[:5]])  # fmt: skip
case("Tensor", "dim_order", lambda m, f: [f(x) for x in (m.ones(2, 3, 4), m.ones(2, 3, 4, 5).to(memory_format=m.channels_last))])
case("Tensor", "T mT", lambda m, f: value(f, numbers(m, 3, 2)))
case("Tensor", "H mH", lambda m, f: value(f, numbers(m, 3, 2) * (1 + 2j)))
case("Tensor", "real imag", lambda m, f: value(f, numbers(m, 3, 2) * (1 + 2j)))
case("Tensor", "data", lambda m, f: (lambda x: (value(f, x), value(f, x).requires_grad, value(f, x).data_ptr() == x.data_ptr()))(numbers(m, 3, grad=True)))
case("Tensor", "grad", lambda m, f: (lambda x: (value(f, x), (x * x).sum().backward(), value(f, x)))(numbers(m, 3, grad=True)))
case("Tensor", "grad_fn", lambda m, f: [type(value(f, x)).__name__ for x in (m.ones(1), numbers(m, 2, grad=True).exp(), numbers(m, 2, grad=True).sin())])
case("Tensor", "apply_", lambda m, f: (f(m.arange(6.0).reshape(2, 3).t(), lambda v: v * v + 1), raised(lambda: f(m.ones(2), lambda v: "x"))))
case("Tensor", "map_", lambda m, f: f(m.ones(2, 3), m.arange(3.0), lambda a, b: a + 2 * b))
case("Tensor", "map2_", lambda m, f: f(m.ones(3), m.arange(3.0), m.ones(3), lambda a, b, c: a + b * 2 + c))
case("Tensor", "as_subclass", lambda m, f: (lambda c: type(f(m.ones(2), c)) is c)(type("Mine", (m.Tensor,), {})))
case("Tensor", "backward", lambda m, f: (lambda x: (f((x * x).sum()), x.grad))(numbers(m, 3, grad=True)))
case("Tensor", "bernoulli", lambda m, f: (f(numbers(m, 30)), f(numbers(m, 30), 0.3)))
case("Tensor", "bernoulli_", lambda m, f: (f(m.zeros(30), 0.3), f(m.zeros(30), numbers(m, 30))))
case("Tensor", "multinomial", lambda m, f: f(numbers(m, 2, 8), 4))
case("Tensor", "random_", lambda m, f: (f(m.zeros(8)), f(m.zeros(8, dtype=m.int64), 5), f(m.zeros(8), 2, 9)))
case("Tensor", "data_ptr const_data_ptr", lambda m, f: (lambda x: f(x[1:]) - f(x))(m.arange(4)))
case("Tensor", "copy_", lambda m, f: f(m.zeros(2, 3), numbers(m, 3)))
case("Tensor", "cpu", lambda m, f: (lambda x: (f(x), f(x) is x))(numbers(m, 3)))
case("Tensor", "cuda", lambda m, f: isinstance(raised(lambda: f(m.ones(1))), tuple))
case("Tensor", "pin_memory record_stream", lambda m, f: raised(lambda: f(m.ones(1), *(() if "pin" in f.__name__ else (None,)))) is not None)
case("Tensor", "ipu xpu", lambda m, f: raised(lambda: f(m.ones(1))))
case("Tensor", "mtia", lambda m, f: raised(lambda: f(m.ones(1)))[0])
case("Tensor", "dequantize", lambda m, f: f(m.ones(2, dtype=m.float16)))
case("Tensor", "detach", lambda m, f: (lambda y: (y, y.requires_grad))(f(numbers(m, 3, grad=True))))
case("Tensor", "detach_", lambda m, f: (lambda y: (f(y) is y, y.requires_grad))(numbers(m, 3, grad=True) * 2))
case("Tensor", "eig symeig", lambda m, f: raised(lambda: f(m.eye(2))))
case("Tensor", "lstsq solve", lambda m, f: raised(lambda: f(m.eye(2), m.eye(2))))
case("Tensor", "reinforce", lambda m, f: raised(lambda: f(m.ones(1), 1.0)))
case("Tensor", "fill_diagonal_", lambda m, f: (f(m.zeros(3, 3), 2.0), f(m.zeros(5, 2), 1, wrap=True)))
case("Tensor", "hardshrink relu relu_", lambda m, f: f(numbers(m, 5) - 0.5))
case("Tensor", "prelu", lambda m, f: f(numbers(m, 5) - 0.5, m.tensor([0.2], dtype=m.float64)))
case("Tensor", "is_nonzero", lambda m, f: (f(m.tensor(2)), f(m.tensor([0.0]))))
case("Tensor", "is_same_size", lambda m, f: (f(m.ones(2, 3), m.ones(2, 3)), f(m.ones(2), m.ones(3))))
case("Tensor", "is_set_to", lambda m, f: (lambda x: (f(x, x.view(4)), f(x, x.clone())))(m.ones(4)))
case("Tensor", "item tolist", lambda m, f: (f(m.tensor(2.5)), f(m.tensor([3]) if "item" in f.__name__ else m.ones(2, 2))))
case("Tensor", "module_load", lambda m, f: (f(m.zeros(2), m.ones(2)), f(m.zeros(2), m.ones(3), assign=True)))
case("Tensor", "new", lambda m, f: (f(m.ones(1, dtype=m.int16), [1, 2]), f(m.ones(1), 2, 3).shape))
case("Tensor", "new_tensor", lambda m, f: (f(m.ones(1, dtype=m.int16), [1, 2]), f(m.ones(1), 3)))
case("Tensor", "numpy", lambda m, f: (lambda a: (a.tolist(), str(a.dtype), a.strides))(f(m.arange(6).reshape(2, 3).t())))
case("Tensor", "register_hook", lambda m, f: (lambda x: (f(x, lambda g: g * 10), (x * 2).sum().backward(), x.grad)[1:])(numbers(m, 3, grad=True)))
case("Tensor", "register_post_accumulate_grad_hook", lambda m, f: (lambda x: (f(x, times_ten), (x * 2).sum().backward(), x.grad)[1:])(numbers(m, 3, grad=True)))
case("Tensor", "requires_grad_", lambda m, f: (f(m.ones(1)).requires_grad, f(m.ones(1), False).requires_grad, raised(lambda: f(m.ones(1, dtype=m.int64)))[0]))
case("Tensor", "resize", lambda m, f: f(m.arange(6), 2, 3))
case("Tensor", "resize_as", lambda m, f: f(m.arange(6), m.ones(3, 2)))
case("Tensor", "retain_grad", lambda m, f: (lambda y: (f(y), (y * y).sum().backward(), y.grad))(numbers(m, 3, grad=True) * 2))
case("Tensor", "set_", lambda m, f: (lambda s: f(m.empty(0), s.untyped_storage(), 1, (2, 2), (1, 2)))(m.arange(6.0)))
case("Tensor", "share_memory_", lambda m, f: (lambda x: (f(x), x.is_shared()))(numbers(m, 3)))
case("Tensor", "slice_inverse", lambda m, f: f(m.arange(6)[1:3], m.zeros(6, dtype=m.int64)))
case("Tensor", "slogdet", lambda m, f: f(numbers(m, 3, 3)))
case("Tensor", "storage", lambda m, f: (f(m.arange(3)).tolist(), len(f(m.ones(2, 2))), type(f(m.ones(1))).__name__))
case("Tensor", "storage_type", lambda m, f: repr(f(m.ones(1, dtype=m.int16))))
case("Tensor", "untyped_storage", lambda m, f: (f(m.arange(3, dtype=m.int16)).tolist(), f(m.ones(2)).nbytes()))
case("Tensor", "type_as", lambda m, f: f(m.ones(2), m.ones(1, dtype=m.int8)))
case("Tensor", "unsafe_split_with_sizes", lambda m, f: f(numbers(m, 5, 2), [2, 3]))

# ---- sparse tensors


def coo(m: Any) -> Any:
    return m.sparse_coo_tensor(m.tensor([[0, 1, 1], [2, 0, 2]]), m.tensor([3.0, 4.0, 5.0]), (2, 3))


def dense(m: Any) -> Any:
    return m.tensor([[0.0, 0, 3], [4, 0, 5]])


case("Tensor", "to_dense", lambda m, f: f(coo(m)))
case("Tensor", "coalesce", lambda m, f: f(coo(m)).to_dense())
case("Tensor", "is_coalesced sparse_dim dense_dim", lambda m, f: (f(coo(m)), f(coo(m).coalesce())))
case("Tensor", "indices values", lambda m, f: f(coo(m).coalesce()))
case("Tensor", "to_sparse to_sparse_coo to_sparse_csr to_sparse_csc", lambda m, f: (lambda s: (str(s.layout), s.to_dense()))(f(dense(m))))
case("Tensor", "to_sparse_bsr to_sparse_bsc", lambda m, f: (lambda s: (str(s.layout), s.to_dense()))(f(m.ones(4, 4).triu(), (2, 2))))
case("Tensor", "crow_indices col_indices", lambda m, f: f(dense(m).to_sparse_csr()))
case("Tensor", "ccol_indices row_indices", lambda m, f: f(dense(m).to_sparse_csc()))
case("Tensor", "sparse_mask", lambda m, f: f(m.ones(2, 3) * 2, coo(m).coalesce()).to_dense())
case("Tensor", "sparse_resize_ sparse_resize_and_clear_", lambda m, f: (lambda s: (f(s, (4, 5), 2, 0), s.shape, s._nnz())[1:])(coo(m)))
case("Tensor", "smm", lambda m, f: f(coo(m), m.ones(3, 2)).to_dense())
case("Tensor", "sspaddmm", lambda m, f: f(coo(m), coo(m), m.ones(3, 3)).to_dense())
case("Tensor", "resize_as_sparse_", lambda m, f: (lambda s: f(s, coo(m)).shape)(m.sparse_coo_tensor(m.zeros(2, 0, dtype=m.int64), m.zeros(0), (1, 1))))
case("torch", "sparse_coo_tensor", lambda m, f: f([[0, 1], [1, 0]], [2.0, 3.0], (2, 2)).to_dense())
case("torch", "sparse_csr_tensor", lambda m, f: f([0, 1, 2], [1, 0], [2.0, 3.0], (2, 2)).to_dense())
case("torch", "sparse_csc_tensor", lambda m, f: f([0, 1, 2], [1, 0], [2.0, 3.0], (2, 2)).to_dense())
case("torch", "sparse_bsr_tensor sparse_bsc_tensor", lambda m, f: f([0, 1], [0], m.ones(1, 2, 2), (2, 2)).to_dense())
case("torch", "sparse_compressed_tensor", lambda m, f: f([0, 1, 2], [1, 0], [2.0, 3.0], (2, 2), layout=m.sparse_csr).to_dense())
case("torch", "sparse_csr sparse_csc sparse_bsr sparse_bsc", lambda m, f: (str(f), isinstance(f, m.layout)))
case("torch", "smm", lambda m, f: f(coo(m), m.ones(3, 2)).to_dense())
case("torch", "spmm dsmm", lambda m, f: (f(coo(m), m.ones(3, 2)), f(m.ones(3, 2), dense(m)), f(coo(m), m.ones(3, 2), out=m.zeros(2, 2))))
case("torch", "hsmm", lambda m, f: f(coo(m), m.ones(3, 2)).to_dense())
case("torch", "hspmm", lambda m, f: f(coo(m), m.ones(3, 2)).to_dense())
case("torch", "sspaddmm", lambda m, f: f(coo(m), coo(m), m.ones(3, 3)).to_dense())
case("torch", "saddmm", lambda m, f: f(coo(m), coo(m), m.ones(3, 3), beta=2, alpha=3).to_dense())
case("torch", "resize_as_sparse_", lambda m, f: (lambda s: f(s, coo(m)).shape)(m.sparse_coo_tensor(m.zeros(2, 0, dtype=m.int64), m.zeros(0), (1, 1))))
# of sparse_coo PyTorch has neither
case("torch", "indices_copy", lambda m, f: (raised(lambda: f(dense(m))), raised(lambda: f(dense(m).to_sparse_csr()))))
case("torch", "values_copy", lambda m, f: (f(dense(m).to_sparse_csr()), f(dense(m).to_sparse_csc()), raised(lambda: f(dense(m)))))
case("torch", "crow_indices_copy col_indices_copy", lambda m, f: f(dense(m).to_sparse_csr()))
case("torch", "ccol_indices_copy row_indices_copy", lambda m, f: f(dense(m).to_sparse_csc()))
