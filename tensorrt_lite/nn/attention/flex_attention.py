"""Attention whose scores and mask are functions of positions: PyTorch's `torch.nn.attention.flex_attention` in its eager meaning.

The functions see numbers (a score, and the indices of its batch, head, query and key) and are mapped over all of them by `vmap`. A mask alone goes to the tiled
kernel of `scaled_dot_product_attention`; a function of scores, or a wish for their logarithms, holds the matrix of scores.
"""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypedDict

from tensorrt_lite import _root as trt
from tensorrt_lite._C.core.hints import LazyModule
from tensorrt_lite.tensor import Tensor
from tensorrt_lite.nn import functional as F

_accelerator = LazyModule("tensorrt_lite.accelerator")
_transforms_mapping = LazyModule("tensorrt_lite._transforms.mapping")

__all__ = [
    "AuxOutput",
    "AuxRequest",
    "BlockMask",
    "FlexKernelOptions",
    "and_masks",
    "create_block_mask",
    "create_mask",
    "flex_attention",
    "noop_mask",
    "or_masks",
]

MaskMod = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
ScoreMod = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]

_DEFAULT_SPARSE_BLOCK_SIZE = 128
_TENSORS = (
    "kv_num_blocks",
    "kv_indices",
    "full_kv_num_blocks",
    "full_kv_indices",
    "q_num_blocks",
    "q_indices",
    "full_q_num_blocks",
    "full_q_indices",
)
_ORDERS = ("dq_write_order", "dq_write_order_full", "dq_kv_order")


class FlexKernelOptions(TypedDict, total=False):
    """Options of PyTorch's kernels on CUDA, which are accepted without effect."""

    num_warps: int
    num_stages: int
    BLOCK_M: int
    BLOCK_N: int
    PRESCALE_QK: bool
    ROWS_GUARANTEED_SAFE: bool
    BLOCKS_ARE_CONTIGUOUS: bool
    WRITE_DQ: bool
    FORCE_USE_FLEX_ATTENTION: bool
    USE_TMA: bool
    BACKEND: str


class AuxRequest(NamedTuple):
    """What `flex_attention` is to give beside its result: lse, the logarithms of sums of exponentials; max_scores, the largest scores."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """lse and max_scores, (B, H, L) each, None where they were not asked for."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """The mask that masks nothing."""
    return batch.new_ones((), dtype=trt.bool)


def _sliced_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    raise RuntimeError("Cannot use mask_mod from a sliced BlockMask")


def or_masks(*mask_mods: MaskMod) -> MaskMod:
    """The mask of positions that any of the masks lets through. RuntimeError unless all are callable.

    >>> from tensorrt_lite.nn.attention.flex_attention import create_mask, or_masks
    >>> create_mask(or_masks(lambda b, h, q, kv: q == kv, lambda b, h, q, kv: kv == 0), None, None, 2, 3)[0, 0]
    tensor([[ True, False, False],
            [ True,  True, False]])
    """
    return _joined(mask_mods, False)


def and_masks(*mask_mods: MaskMod) -> MaskMod:
    """The mask of positions that all of the masks let through. RuntimeError unless all are callable."""
    return _joined(mask_mods, True)


def _joined(mask_mods: tuple[MaskMod, ...], every: bool) -> MaskMod:
    if not all(callable(mask) for mask in mask_mods):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")

    def mask_mod(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        result = b.new_full((), every, dtype=trt.bool)
        for mask in mask_mods:
            one = mask(b, h, q_idx, kv_idx)
            result = result & one if every else result | one
        return result

    mask_mod.__name__ = mask_mod.__qualname__ = "and_mask" if every else "or_mask"
    return mask_mod


def _over_positions(function: Callable[..., Tensor], scores: bool) -> Callable[..., Tensor]:
    """A function of numbers as one of (B, H, Q, KV) scores, where it has them, and of the four ranges of indices."""
    first = (0,) if scores else ()
    for dims in ((None, None, None, 0), (None, None, 0, None), (None, 0, None, None), (0, None, None, None)):
        function = _transforms_mapping.vmap(function, in_dims=(*first, *dims))
    return function


def _ranges(sizes: tuple[int, ...], device: Any) -> list[Tensor]:
    return [trt.arange(size, device=device) for size in sizes]


def _takes_score(function: Callable[..., Tensor]) -> bool:
    """Whether a function has five arguments without defaults, and not the four of a mask."""
    count = sum(p.default is inspect.Parameter.empty for p in inspect.signature(function).parameters.values())
    if count not in (4, 5):
        raise AssertionError(f"Expected 4 or 5 positional args, got {count}")
    return count == 5


def create_mask(mod_fn: MaskMod | ScoreMod, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None) -> Tensor:
    """The mask (B, H, Q_LEN, KV_LEN) of a `mask_mod`, or where a `score_mod` does not give minus infinity. B and H count as 1 where they are None.

    >>> from tensorrt_lite.nn.attention.flex_attention import create_mask
    >>> create_mask(lambda b, h, q, kv: q >= kv, None, None, 2, 3)[0, 0]
    tensor([[ True, False, False],
            [ True,  True, False]])
    """
    device = device if device is not None else _accelerator.current_accelerator() or "cpu"
    sizes = (1 if B is None else B, 1 if H is None else H, Q_LEN, KV_LEN)
    if _takes_score(mod_fn):
        return ~_over_positions(mod_fn, True)(trt.zeros(sizes, device=device), *_ranges(sizes, device)).isneginf()
    return _over_positions(mod_fn, False)(*_ranges(sizes, device))


def _pair(size: int | tuple[int, int]) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else (size[0], size[1])


def _ordered(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """Of each row of a matrix of blocks how many there are, and their columns, those in front that are there."""
    present = blocks.to(trt.int32)
    return present.sum(-1).to(trt.int32), present.argsort(dim=-1, descending=True, stable=True).to(trt.int32)


def _dense(counts: Tensor, columns: Tensor) -> Tensor:
    """The matrix of blocks (..., rows, columns), int32, of what `_ordered` gives."""
    width = columns.shape[-1]
    there = trt.arange(width, device=columns.device) < counts.unsqueeze(-1)
    written = trt.where(there, columns, width).long().clamp_(max=width)  # what is not there goes into a column behind the last
    return columns.new_zeros((*columns.shape[:-1], width + 1), dtype=trt.int32).scatter_(-1, written, 1)[..., :width].contiguous()


class BlockMask:
    """Which blocks of a mask (B, H, Q_LEN, KV_LEN) are computed, and the function for what lies inside of them.

    seq_lengths: (Q_LEN, KV_LEN). kv_num_blocks: (B, H, rows of blocks), how many blocks of a row the mask cuts; kv_indices: (B, H, rows, columns), their
    columns in front. full_kv_num_blocks and full_kv_indices name those that need no mask. q_num_blocks, q_indices and the full ones are the same by
    columns. BLOCK_SIZE: queries and keys of a block.
    """

    seq_lengths: tuple[int, int]
    kv_num_blocks: Tensor
    kv_indices: Tensor
    full_kv_num_blocks: Tensor | None
    full_kv_indices: Tensor | None
    q_num_blocks: Tensor | None
    q_indices: Tensor | None
    full_q_num_blocks: Tensor | None
    full_q_indices: Tensor | None
    BLOCK_SIZE: tuple[int, int]
    mask_mod: MaskMod

    def __init__(
        self,
        seq_lengths: tuple[int, int],
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None,
        full_kv_indices: Tensor | None,
        q_num_blocks: Tensor | None,
        q_indices: Tensor | None,
        full_q_num_blocks: Tensor | None,
        full_q_indices: Tensor | None,
        BLOCK_SIZE: tuple[int, int] = (_DEFAULT_SPARSE_BLOCK_SIZE, _DEFAULT_SPARSE_BLOCK_SIZE),
        mask_mod: MaskMod = noop_mask,
        *,
        dq_write_order: Tensor | None = None,
        dq_write_order_full: Tensor | None = None,
        dq_kv_order: Tensor | None = None,
        dq_kv_order_spt: bool | None = None,
    ) -> None:
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        self.seq_lengths, self.BLOCK_SIZE, self.mask_mod = seq_lengths, BLOCK_SIZE, mask_mod
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
        self.q_num_blocks, self.q_indices = q_num_blocks, q_indices
        self.full_q_num_blocks, self.full_q_indices = full_q_num_blocks, full_q_indices
        self.dq_write_order, self.dq_write_order_full, self.dq_kv_order, self.dq_kv_order_spt = (
            dq_write_order,
            dq_write_order_full,
            dq_kv_order,
            dq_kv_order_spt,
        )

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None,
        BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
        mask_mod: MaskMod | None = None,
        seq_lengths: tuple[int, int] | None = None,
        compute_q_blocks: bool = True,
        *,
        dq_write_order: Tensor | None = None,
        dq_write_order_full: Tensor | None = None,
        dq_kv_order: Tensor | bool | None = None,
    ) -> BlockMask:
        """A mask of the blocks that each row has; the lengths are those of all blocks where none are given. RuntimeError for fewer than two dimensions."""
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError("full_kv_num_blocks and full_kv_indices must be both provided or omitted")
        if dq_kv_order is not None and not isinstance(dq_kv_order, (bool, Tensor)):
            raise ValueError("dq_kv_order must be a bool, Tensor, or None")
        by_columns: list[Tensor | None] = []
        for counts, columns in ((kv_num_blocks, kv_indices), (full_kv_num_blocks, full_kv_indices)):
            there = compute_q_blocks and counts is not None and columns is not None
            by_columns += _ordered(_dense(counts, columns).transpose(-2, -1)) if there else (None, None)  # type: ignore[arg-type]
        block = _pair(BLOCK_SIZE)
        lengths = seq_lengths or (kv_indices.shape[-2] * block[0], kv_indices.shape[-1] * block[1])
        is_flag = isinstance(dq_kv_order, bool)
        return cls(
            lengths, kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices, *by_columns, BLOCK_SIZE=block, mask_mod=mask_mod or noop_mask, dq_write_order=dq_write_order,
            dq_write_order_full=dq_write_order_full, dq_kv_order=None if is_flag else dq_kv_order, dq_kv_order_spt=dq_kv_order if is_flag else None,
        )  # fmt: skip

    def as_tuple(self, flatten: bool = True) -> tuple[Any, ...]:
        """All attributes in their order; without `flatten` the lengths, and the sizes of blocks, are pairs."""
        lengths, block = (self.seq_lengths, self.BLOCK_SIZE) if flatten else ((self.seq_lengths,), (self.BLOCK_SIZE,))
        return (*lengths, *(getattr(self, name) for name in (*_TENSORS, *_ORDERS)), self.dq_kv_order_spt, *block, self.mask_mod)

    @property
    def shape(self) -> tuple[int, ...]:
        """(B, H, Q_LEN, KV_LEN)."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """The number of elements of the mask, computed or not."""
        return math.prod(self.shape)

    def sparsity(self) -> float:
        """Per cent of the elements whose blocks are not computed."""
        blocks = int(self.kv_num_blocks.sum()) + (0 if self.full_kv_num_blocks is None else int(self.full_kv_num_blocks.sum()))
        return 100 * (1 - blocks * self.BLOCK_SIZE[0] * self.BLOCK_SIZE[1] / self.numel())

    def to_dense(self) -> Tensor:
        """The matrix of blocks (B, H, rows, columns), int32: 1 where one is computed."""
        partial = _dense(self.kv_num_blocks, self.kv_indices)
        if self.full_kv_num_blocks is None or self.full_kv_indices is None:
            return partial
        return partial | _dense(self.full_kv_num_blocks, self.full_kv_indices)

    def to_string(self, grid_size: int | tuple[int, int] = (20, 20), limit: int = 4) -> str:
        """A drawing of the blocks of the first `limit` batches and heads, of at most grid_size characters twice as wide; -1 draws each block."""
        dense = self.to_dense()
        *batch, rows, columns = dense.shape
        most = (rows, columns) if grid_size == -1 else _pair(grid_size)
        steps = [max(1, -(-size // width)) for size, width in zip((rows, columns), most)]
        drawn = []
        for count, index in enumerate(itertools.product(*map(range, batch))):
            if count == limit:
                drawn += [
                    "...",
                    "To print out more, set BlockMask.to_string(limit=N)",
                    "You can also index (BlockMask[batch, head]) to choose a specific batch or head",
                ]
                break
            lines = [f"{index}"]
            for row in range(0, rows, steps[0]):
                shares = [
                    dense[index][row : row + steps[0], column : column + steps[1]].float().mean().item() for column in range(0, columns, steps[1])
                ]
                lines.append("".join(2 * ("█" if share == 1 else "░" if share else " ") for share in shares))
            drawn.append("\n".join(lines) + "\n")
        return "\n".join(drawn)

    def to(self, device: Any) -> BlockMask:
        """The mask with its tensors on a device."""
        moved = {name: None if (t := getattr(self, name)) is None else t.to(device) for name in (*_TENSORS, *_ORDERS)}
        return BlockMask(
            seq_lengths=self.seq_lengths, **moved, BLOCK_SIZE=self.BLOCK_SIZE, mask_mod=self.mask_mod, dq_kv_order_spt=self.dq_kv_order_spt
        )

    def _changed(self, change: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]], mask_mod: MaskMod, lengths: tuple[int, int]) -> BlockMask:
        full = (
            (None, None) if self.full_kv_num_blocks is None or self.full_kv_indices is None else change(self.full_kv_num_blocks, self.full_kv_indices)
        )
        made = type(self).from_kv_blocks(
            *change(self.kv_num_blocks, self.kv_indices), *full, self.BLOCK_SIZE, mask_mod, lengths, compute_q_blocks=self.q_indices is not None
        )
        made.dq_kv_order_spt = self.dq_kv_order_spt
        return made

    def __getitem__(self, index: Any) -> BlockMask:
        """The blocks of some batches, heads and rows, whose dimensions stay. `mask_mod` counts from the whole mask's start, so that it raises until it is set anew."""
        given = index if isinstance(index, tuple) else (index,)
        padded = (*given, slice(None), slice(None), slice(None))[:3]
        sizes = self.kv_num_blocks.shape[:3]
        kept = tuple((slice(i + n, i + n + 1) if -n <= i < 0 else slice(i, i + 1)) if isinstance(i, int) else i for i, n in zip(padded, sizes))
        return self._changed(lambda counts, columns: (counts[kept], columns[kept]), _sliced_mask, self.seq_lengths)

    def _adjust(self, new_q_len: int, new_kv_len: int) -> BlockMask:
        """The upper left corner of the mask, for other lengths."""
        rows, columns = -(-new_q_len // self.BLOCK_SIZE[0]), -(-new_kv_len // self.BLOCK_SIZE[1])

        def cropped(counts: Tensor, indices: Tensor) -> tuple[Tensor, Tensor]:
            indices = indices[:, :, :rows, :columns]
            counts = counts[:, :, :rows].clamp(max=columns)
            return (indices < counts[..., None]).sum(-1).to(trt.int32), indices

        return self._changed(cropped, self.mask_mod, (new_q_len, new_kv_len))

    def __repr__(self) -> str:
        sizes = "".join(f"    {name}={None if (t := getattr(self, name)) is None else t.shape},\n" for name in _TENSORS)
        name = getattr(self.mask_mod, "__name__", self.mask_mod)
        return f"BlockMask(\n{sizes}    BLOCK_SIZE={self.BLOCK_SIZE},\n    shape={self.shape},\n    sparsity={self.sparsity():.2f}%,\n    mask_mod={name}\n)"

    def __str__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n{self.to_string().strip()}\n)"

    def _mask(self, sizes: tuple[int, ...], device: Any) -> Tensor | None:
        """The mask of `sizes` elements: `mask_mod` in the blocks that it cuts, all of the full ones. None where all is let through."""
        if self.mask_mod is _sliced_mask:
            raise RuntimeError("Cannot use mask_mod from a sliced BlockMask")
        inside = None if self.mask_mod is noop_mask else _over_positions(self.mask_mod, False)(*_ranges(sizes, device))
        partial = self._enlarged(_dense(self.kv_num_blocks, self.kv_indices), sizes)
        full = (
            None
            if self.full_kv_num_blocks is None or self.full_kv_indices is None
            else self._enlarged(_dense(self.full_kv_num_blocks, self.full_kv_indices), sizes)
        )
        mask = partial if inside is None else inside if partial is None else inside & partial
        return mask if full is None or mask is None else mask | full

    def _enlarged(self, blocks: Tensor, sizes: tuple[int, ...]) -> Tensor | None:
        """Blocks as elements; None where all are there."""
        if bool(blocks.all()):
            return None
        return blocks.bool().repeat_interleave(self.BLOCK_SIZE[0], -2).repeat_interleave(self.BLOCK_SIZE[1], -1)[..., : sizes[2], : sizes[3]]


def create_block_mask(
    mask_mod: MaskMod,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
    _compile: bool = False,
    separate_full_blocks: bool = True,
    compute_dq_write_order: bool = False,
    dq_kv_order: bool = True,
) -> BlockMask:
    """The BlockMask of a `mask_mod(b, h, q_idx, kv_idx)`; B and H None where it does not look at them.

    separate_full_blocks: blocks without masked elements are listed on their own. The order in which PyTorch's backward pass on CUDA writes
    (compute_dq_write_order) is a NotImplementedError; `_compile` has no effect.

    >>> from tensorrt_lite.nn.attention.flex_attention import create_block_mask
    >>> mask = create_block_mask(lambda b, h, q, kv: q >= kv, None, None, 256, 256)
    >>> mask.shape, mask.sparsity(), mask.to_dense().tolist()
    ((1, 1, 256, 256), 25.0, [[[[1, 0], [1, 1]]]])
    """
    if _takes_score(mask_mod):
        raise AssertionError(f"create-block_mask requires a mask_mod function! Got {mask_mod}")
    if compute_dq_write_order:
        raise NotImplementedError("create_block_mask(compute_dq_write_order=True)")
    if not isinstance(dq_kv_order, bool):
        raise ValueError("dq_kv_order must be a bool when using create_block_mask")
    rows, columns = _pair(BLOCK_SIZE)
    mask = F.pad(create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device), (0, -KV_LEN % columns, 0, -Q_LEN % rows))
    counts = mask.unflatten(-1, (-1, columns)).unflatten(-3, (-1, rows)).sum((-3, -1))
    full = counts == rows * columns
    partial = (counts > 0) & ~full if separate_full_blocks else counts > 0
    return BlockMask.from_kv_blocks(
        *_ordered(partial), *(_ordered(full) if separate_full_blocks else (None, None)), (rows, columns), mask_mod, (Q_LEN, KV_LEN)
    )


def _check(query: Tensor, key: Tensor, value: Tensor, block_mask: BlockMask | None, enable_gqa: bool) -> None:
    if query.dim() != 4 or key.dim() != 4 or value.dim() != 4:
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    heads, others = query.shape[1], key.shape[1]
    if not enable_gqa and heads != others:
        raise ValueError(
            f"Expect query and key/value to have the same number of heads but got Hq={heads} and Hkv={others}. Try setting enable_gqa=True for GQA."
        )
    if heads % others:
        raise ValueError(f"Expect number of query heads to be a multiple of kv heads for GQA but got Hq={heads} and Hkv={others}.")
    batch, its = query.shape[0], key.shape[0]
    if batch != its:
        if block_mask is None:
            raise ValueError(
                f"Expect query and key/value to have the same batch size, or non-none block_mask, but got block_mask=None, Bq={batch}, and Bkv={its}."
            )
        if block_mask.kv_num_blocks.shape[0] != batch:
            raise ValueError(
                "Expect query and key/value to have the same batch size, or block_mask and query to have the same batch size, "
                f"but got Bq={batch}, Bkv={its}, B_block_mask={block_mask.kv_num_blocks.shape[0]}."
            )
        if its != 1:
            raise RuntimeError(f"Bq and Bkv must broadcast. Got Bq={batch} and Bkv={its}")
    if block_mask is None:
        return
    lengths, needed = block_mask.shape[-2:], (query.shape[-2], key.shape[-2])
    if lengths != needed:
        smaller = needed[0] > lengths[0] or needed[1] > lengths[1]
        what = "a smaller length than you're using it for, you likely need to create a new block mask." if smaller else (
            "a larger length than you're using it for, you can either 1. create a new block mask with the correct length, or 2. 'adjust' the existing block mask to the "
            "correct length by calling block_mask._adjust(q_len, kv_len). This essentially 'crops' the block mask to the upper left corner, which does not work for all mask_mods!"
        )  # fmt: skip
        raise ValueError(
            f"block_mask was created for block_mask.shape={block_mask.shape} but got q_len={needed[0]} and kv_len={needed[1]}. As the block mask was created for {what}"
        )
    if query.device != block_mask.kv_num_blocks.device:
        raise RuntimeError(f"Expect q/k/v and block_mask to be on the same device but got {query.device} and {block_mask.kv_num_blocks.device}.")


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: ScoreMod | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: FlexKernelOptions | None = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Any:
    """Attention with scores changed by `score_mod(score, b, h, q_idx, kv_idx)` and masked by a BlockMask.

    query: (B, H, L, E); key: (B or 1, H, S, E); value: (B or 1, H, S, Ev), with enable_gqa of a divisor of H heads -> (B, H, L, Ev). scale: 1 / sqrt(E) where
    it is None. Rows that are masked whole give zeros. With return_aux a pair of the result and an AuxOutput; with return_lse the result and its `lse`. ValueError
    where heads, batches or lengths do not fit.

    >>> import tensorrt_lite as trt
    >>> from tensorrt_lite.nn.attention.flex_attention import flex_attention
    >>> x = trt.eye(3)[None, None]
    >>> flex_attention(x, x, x, lambda score, b, h, q, kv: trt.where(q >= kv, score, -float("inf")), scale=0.0)[0, 0]
    tensor([[1.0000, 0.0000, 0.0000],
            [0.5000, 0.5000, 0.0000],
            [0.3333, 0.3333, 0.3333]])
    """
    _check(query, key, value, block_mask, enable_gqa)
    if return_lse and return_aux is not None:
        raise ValueError(
            "Cannot specify both return_lse and return_aux. return_lse is deprecated, please use return_aux=AuxRequest(lse=True) instead."
        )
    sizes = (*query.shape[:3], key.shape[2])
    mask = None if block_mask is None else block_mask._mask(sizes, query.device)
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    if key.shape[0] != query.shape[0]:
        key, value = (t.expand(query.shape[0], -1, -1, -1) for t in (key, value))
    if score_mod is None and not return_lse and return_aux is None:
        return F.scaled_dot_product_attention(query, key, value, mask, scale=scale, enable_gqa=enable_gqa)
    if enable_gqa:
        key, value = (t.repeat_interleave(query.shape[1] // t.shape[1], 1) for t in (key, value))
    precision = trt.float64 if query.dtype == trt.float64 else trt.float32
    scores = query.to(precision) @ key.to(precision).transpose(-2, -1) * scale
    if score_mod is not None:
        scores = _over_positions(score_mod, True)(scores, *_ranges(sizes, query.device)).to(precision)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    masked = (scores == -math.inf).all(-1, keepdim=True)
    weights = scores.masked_fill(masked, 0).softmax(-1).masked_fill(masked, 0)
    out = weights.to(query.dtype) @ value.to(query.dtype)
    if return_aux is None and not return_lse:
        return out
    lse = scores.logsumexp(-1) if return_lse or return_aux is not None and return_aux.lse else None
    if return_aux is None:
        return out, lse
    return out, AuxOutput(lse, scores.amax(-1) if return_aux.max_scores else None)
