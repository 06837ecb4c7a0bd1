"""Lookup tables of vectors."""

from __future__ import annotations

from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite.autograd.grad_mode import no_grad

from .. import functional as F
from .. import init
from ..parameter import Parameter
from ._typed import TensorModule


def _checked_padding(padding_idx: int | None, num_embeddings: int) -> int | None:
    if padding_idx is None:
        return None
    if not -num_embeddings <= padding_idx < num_embeddings:
        raise AssertionError("Padding_idx must be within num_embeddings")
    return padding_idx + num_embeddings if padding_idx < 0 else padding_idx


class _Table(TensorModule):
    """The weight (num_embeddings, embedding_dim) and its initialisation."""

    weight: Parameter
    padding_idx: int | None

    def _make_weight(
        self, num_embeddings: int, embedding_dim: int, weight: Any, freeze: bool, device: Any, dtype: Any
    ) -> None:
        if weight is None:
            empty = trt.empty((num_embeddings, embedding_dim), device=device, dtype=dtype)
            self.weight = Parameter(empty, requires_grad=not freeze)
            self.reset_parameters()
        else:
            if list(weight.shape) != [num_embeddings, embedding_dim]:
                raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
            self.weight = Parameter(weight, requires_grad=not freeze)

    def reset_parameters(self) -> None:
        """Draws the table from N(0, 1) and zeroes the padding row."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].fill_(0)


class Embedding(_Table):
    """Looks up rows of a table that is learned.

    input: integers, (*), output: (*, embedding_dim), weight: (num_embeddings, embedding_dim).

    Parameters:
        num_embeddings (int): how many rows the table has
        embedding_dim (int): D, the width of each row
        padding_idx (int or None, default None): the row that gets no gradient, zero at first
        max_norm (float or None, default None): rows of a greater norm are scaled down to it, in the table itself; None
            leaves them
        norm_type (float, default 2.0): the exponent p of the norm
        scale_grad_by_freq (bool, default False): whether gradients are divided by how often the row was used
        sparse (bool, default False): whether the gradient of the weight is a sparse tensor
        _weight (Tensor or None, default None): the table, instead of a random one
        _freeze (bool, default False): whether the table is not learned
        device (device or None, default None): where the parameters are; None is the default device
        dtype (dtype or None, default None): the type of the parameters; None is the default

    >>> import tensorrt_lite as trt
    >>> table = trt.nn.Embedding(num_embeddings=10, embedding_dim=3, padding_idx=0)
    >>> table(trt.tensor([[1, 2, 0], [4, 0, 0]])).shape
    torch.Size([2, 3, 3])
    >>> table.weight[0].tolist()
    [0.0, 0.0, 0.0]
    >>> trt.nn.Embedding.from_pretrained(trt.eye(3))(trt.tensor([2, 0]))
    tensor([[0., 0., 1.],
            [1., 0., 0.]])
    """

    __constants__ = [
        "num_embeddings",
        "embedding_dim",
        "padding_idx",
        "max_norm",
        "norm_type",
        "scale_grad_by_freq",
        "sparse",
    ]

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Any = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = _checked_padding(padding_idx, num_embeddings)
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self._make_weight(num_embeddings, embedding_dim, _weight, _freeze, device, dtype)
        self.sparse = sparse

    def forward(self, input: Any) -> Any:
        return F.embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.padding_idx is not None:
            text += f", padding_idx={self.padding_idx}"
        if self.max_norm is not None:
            text += f", max_norm={self.max_norm}"
        if self.norm_type != 2:
            text += f", norm_type={self.norm_type}"
        if self.scale_grad_by_freq is not False:
            text += f", scale_grad_by_freq={self.scale_grad_by_freq}"
        if self.sparse is not False:
            text += ", sparse=True"
        return text

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Any,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Embedding:
        """An Embedding over a given table (num_embeddings, embedding_dim), frozen by default."""
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, width = embeddings.shape
        return cls(
            rows,
            width,
            padding_idx,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            sparse,
            _weight=embeddings,
            _freeze=freeze,
        )


class EmbeddingBag(_Table):
    """Looks up rows of a table that is learned, and takes the sum, mean or maximum of each bag of them.

    input: integers, (B, N), or (N) with offsets (B); output: (B, embedding_dim), weight: (num_embeddings, embedding_dim).

    Parameters:
        num_embeddings (int): how many rows the table has
        embedding_dim (int): D, the width of each row
        max_norm (float or None, default None): rows of a greater norm are scaled down to it, in the table itself; None
            leaves them
        norm_type (float, default 2.0): the exponent p of the norm
        scale_grad_by_freq (bool, default False): whether gradients are divided by how often the row was used
        mode (str, default 'mean'): 'sum', 'mean' or 'max'
        sparse (bool, default False): whether the gradient of the weight is a sparse tensor
        _weight (Tensor or None, default None): the table, instead of a random one
        include_last_offset (bool, default False): whether the last offset is the end of the last bag
        padding_idx (int or None, default None): the row that is left out of bags and gets no gradient
        device (device or None, default None): where the parameters are; None is the default device
        dtype (dtype or None, default None): the type of the parameters; None is the default

    >>> import tensorrt_lite as trt
    >>> table = trt.tensor([[1.0, 1.0], [2.0, 4.0], [6.0, 8.0]])
    >>> bag = trt.nn.EmbeddingBag.from_pretrained(table, mode="sum")
    >>> bag(trt.tensor([0, 1, 1, 2]), offsets=trt.tensor([0, 3]))  # rows 0, 1, 1 and row 2
    tensor([[5., 9.],
            [6., 8.]])
    >>> bag(trt.tensor([[0, 2], [1, 2]]))
    tensor([[ 7.,  9.],
            [ 8., 12.]])
    """

    __constants__ = [
        "num_embeddings",
        "embedding_dim",
        "max_norm",
        "norm_type",
        "scale_grad_by_freq",
        "mode",
        "sparse",
        "include_last_offset",
        "padding_idx",
    ]

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Any = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.padding_idx = _checked_padding(padding_idx, num_embeddings)
        self._make_weight(num_embeddings, embedding_dim, _weight, False, device, dtype)
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset

    def forward(self, input: Any, offsets: Any = None, per_sample_weights: Any = None) -> Any:
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.max_norm is not None:
            text += f", max_norm={self.max_norm}"
        if self.norm_type != 2:
            text += f", norm_type={self.norm_type}"
        if self.scale_grad_by_freq is not False:
            text += f", scale_grad_by_freq={self.scale_grad_by_freq}"
        text += f", mode={self.mode!r}"
        if self.padding_idx is not None:
            text += f", padding_idx={self.padding_idx}"
        return text

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Any,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> EmbeddingBag:
        """An EmbeddingBag over a given table (num_embeddings, embedding_dim), frozen by default."""
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, width = embeddings.shape
        bag = cls(
            rows,
            width,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            mode,
            sparse,
            embeddings,
            include_last_offset,
            padding_idx,
        )
        bag.weight.requires_grad = not freeze
        return bag
