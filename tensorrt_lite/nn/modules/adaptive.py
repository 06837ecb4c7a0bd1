"""Softmax over many classes whose frequencies differ widely."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

from tensorrt_lite import _root as trt

from .. import functional as F
from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """Adaptive softmax (Grave et al. 2017): frequent classes in a head, the rest in clusters of shrinking width.

    Labels are sorted by frequency, most frequent first; `cutoffs` are the first labels of the clusters.
    input: (N, in_features) or (in_features), target: (N) or (); returns (output (N), loss).

    Parameters:
        in_features (int): the number of features of the input
        n_classes (int): how many classes
        cutoffs (sequence of ints): the first class of each cluster but the head
        div_value (float, default 4.0): each cluster's width is the one before divided by it
        head_bias (bool, default False): whether the head has a bias
        device (device or None, default None): where the parameters are; None is the default device
        dtype (dtype or None, default None): the type of the parameters; None is the default

    >>> import tensorrt_lite as trt
    >>> head = trt.nn.AdaptiveLogSoftmaxWithLoss(in_features=16, n_classes=100, cutoffs=[10, 40])
    >>> hidden, labels = trt.randn(5, 16), trt.tensor([3, 12, 0, 99, 41])
    >>> output, loss = head(hidden, labels)
    >>> output.shape, loss.shape, head.log_prob(hidden).shape, head.predict(hidden).shape
    (torch.Size([5]), torch.Size([]), torch.Size([5, 100]), torch.Size([5]))
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Any,
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        if len(cutoffs) == 0:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        rising = cutoffs == sorted(cutoffs) and len(set(cutoffs)) == len(cutoffs)
        if not rising or min(cutoffs) <= 0 or max(cutoffs) > n_classes - 1 or any(int(c) != c for c in cutoffs):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each "
                "value is between 1 and n_classes-1"
            )
        place = {"device": device, "dtype": dtype}
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, **place)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            width = int(in_features // (div_value ** (i + 1)))
            size = self.cutoffs[i + 1] - self.cutoffs[i]
            self.tail.append(
                Sequential(Linear(in_features, width, bias=False, **place), Linear(width, size, bias=False, **place))
            )

    def reset_parameters(self) -> None:
        """Draws all weights anew."""
        self.head.reset_parameters()
        for to_hidden, to_output in self.tail:
            to_hidden.reset_parameters()
            to_output.reset_parameters()

    def forward(self, input_: Any, target_: Any) -> Any:
        if target_.dim() == 1:
            if input_.size(0) != target_.size(0):
                raise RuntimeError("Input and target should have the same size in the batch dimension.")
            if input_.dim() != 2:
                raise RuntimeError(
                    f"1D target tensor expects 2D input tensors, but found inputs with size {input_.size()}"
                )
        elif target_.dim() == 0:
            if input_.dim() != 1:
                raise RuntimeError(
                    f"0D target tensor expects 1D input tensors, but found inputs with size {input_.size()}"
                )
        else:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        batched = target_.dim() > 0
        input = input_ if batched else input_.unsqueeze(0)
        target = target_ if batched else target_.unsqueeze(0)
        if bool(((target < 0) | (target >= self.n_classes)).any()):
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{int(target.min())}, {int(target.max())}] were found. "
            )
        # The head's class for each target: the label itself, or the entry of its cluster.
        in_head = target.clone()
        output = input.new_zeros(target.size(0))
        for i in range(self.n_clusters):
            rows = ((target >= self.cutoffs[i]) & (target < self.cutoffs[i + 1])).nonzero().squeeze(1)
            if rows.numel() == 0:
                continue
            within = (target[rows] - self.cutoffs[i]).unsqueeze(1)
            log_probs = F.log_softmax(self.tail[i](input[rows]), 1)
            output = output.index_add(0, rows, log_probs.gather(1, within).squeeze(1))
            in_head[rows] = self.shortlist_size + i
        head = F.log_softmax(self.head(input), 1)
        output = output + head.gather(1, in_head.unsqueeze(1)).squeeze(1)
        loss = (-output).mean()
        return _ASMoutput(output if batched else output.squeeze(0), loss)

    def log_prob(self, input: Any) -> Any:
        """Log-probabilities of all classes: (N, n_classes)."""
        head = F.log_softmax(self.head(input), 1)
        parts = [head[:, : self.shortlist_size]]
        for i in range(self.n_clusters):
            cluster = F.log_softmax(self.tail[i](input), 1)
            parts.append(cluster + head[:, self.shortlist_size + i].unsqueeze(1))
        return trt.cat(parts, 1)

    def predict(self, input: Any) -> Any:
        """log_prob(input).argmax(1), without computing the clusters of rows for which the head suffices."""
        head = self.head(input)
        best = head.argmax(1)
        uncertain = best >= self.shortlist_size
        if not bool(uncertain.any()):
            return best
        rows = uncertain.nonzero().squeeze(1)
        best[rows] = self.log_prob(input[rows]).argmax(1)
        return best
