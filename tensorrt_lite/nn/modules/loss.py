"""Loss layers: the arguments of the functions of the same names, kept."""

from __future__ import annotations

from typing import Any

from .. import functional as F
from .._functional.reduction import legacy_string
from ._typed import TensorModule
from tensorrt_lite.nn.modules.linear import Linear as _Linear
from tensorrt_lite.nn.modules.distance import PairwiseDistance as _PairwiseDistance


class _Loss(TensorModule):
    __constants__ = ["reduction"]

    def __init__(self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean") -> None:
        super().__init__()
        if size_average is not None or reduce is not None:
            reduction = legacy_string(size_average, reduce)
        self.reduction = reduction


class _WeightedLoss(_Loss):
    def __init__(
        self,
        weight: Any = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class L1Loss(_Loss):
    """Takes the mean of the absolute differences: |input - target|; input, target: (*).

    Parameters:
        size_average (bool or None, default None): deprecated; use reduction
        reduce (bool or None, default None): deprecated; use reduction
        reduction (str, default 'mean'): 'mean', 'sum', or 'none' for a loss per element

    >>> import tensorrt_lite as trt
    >>> prediction, target = trt.tensor([1.0, 2.0, 5.0]), trt.tensor([1.0, 4.0, 1.0])
    >>> trt.nn.L1Loss()(prediction, target)
    tensor(2.)
    >>> trt.nn.L1Loss(reduction="none")(prediction, target)
    tensor([0., 2., 4.])
    """

    def forward(self, input: Any, target: Any) -> Any:
        return F.l1_loss(input, target, reduction=self.reduction)


class MSELoss(_Loss):
    """Takes the mean of the squared differences: (input - target) ** 2; input, target: (*).

    Parameters:
        size_average (bool or None, default None): deprecated; use reduction
        reduce (bool or None, default None): deprecated; use reduction
        reduction (str, default 'mean'): 'mean', 'sum', or 'none' for a loss per element

    >>> import tensorrt_lite as trt
    >>> prediction, target = trt.tensor([1.0, 2.0]), trt.tensor([1.0, 4.0])
    >>> trt.nn.MSELoss()(prediction, target)
    tensor(2.)
    >>> trt.nn.MSELoss(reduction="sum")(prediction, target)
    tensor(4.)
    """

    def forward(self, input: Any, target: Any) -> Any:
        return F.mse_loss(input, target, reduction=self.reduction)


class NLLLoss(_WeightedLoss):
    """Takes the negative of the log-probability at the target: -weight[target] * input[target].

    input: log-probabilities (N, C, *) or (C), target: classes (N, *) or ().

    Parameters:
        weight (Tensor or None, default None): the factor of each class's loss, (C); None is 1
        size_average (bool or None, default None): deprecated; use reduction
        ignore_index (int, default -100): the class that adds nothing to the loss
        reduce (bool or None, default None): deprecated; use reduction
        reduction (str, default 'mean'): 'mean', 'sum', or 'none' for a loss per element

    >>> import tensorrt_lite as trt
    >>> log_probs = trt.tensor([[0.5, 0.25, 0.25], [0.1, 0.8, 0.1]]).log()
    >>> trt.nn.NLLLoss()(log_probs, trt.tensor([0, 1]))
    tensor(0.4581)
    >>> trt.nn.NLLLoss(ignore_index=-1)(log_probs, trt.tensor([0, -1]))
    tensor(0.6931)
    """

    __constants__ = ["ignore_index", "reduction"]

    def __init__(
        self,
        weight: Any = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Any, target: Any) -> Any:
        return F.nll_loss(input, target, weight=self.weight, ignore_index=self.ignore_index, reduction=self.reduction)


class NLLLoss2d(NLLLoss):
    """The old name of NLLLoss for images.

    Parameters:
        weight (Tensor or None, default None): the factor of each class's loss, (C); None is 1
        size_average (bool or None, default None): deprecated; use reduction
        ignore_index (int, default -100): the class that adds nothing to the loss
        reduce (bool or None, default None): deprecated; use reduction
        reduction (str, default 'mean'): 'mean', 'sum', or 'none' for a loss per element

    >>> import tensorrt_lite as trt
    >>> log_probs = trt.full((2, 4, 8, 8), 0.25).log()  # four classes
    >>> trt.nn.NLLLoss2d()(log_probs, trt.zeros(2, 8, 8, dtype=trt.long))
    tensor(1.3863)
    """


class CrossEntropyLoss(_WeightedLoss):
    """Compares logits with classes: the negative logarithm of the softmax at the target.

    input: (N, C, *) or (C), target: classes (N, *) or (), or probabilities of the input's shape.

    Parameters:
        weight (Tensor or None, default None): the factor of each class's loss, (C); None is 1
        size_average (bool or None, default None): deprecated; use reduction
        ignore_index (int, default -100): the class that adds nothing to the loss
        reduce (bool or None, default None): deprecated; use reduction
        reduction (str, default 'mean'): 'mean', 'sum', or 'none' for a loss per element
        label_smoothing (float, default 0.0): the share of the target that is spread over all classes, from 0 to 1

    >>> import tensorrt_lite as trt
    >>> logits, classes = trt.tensor([[2.0, 0.0, 0.0], [0.0, 0.0, 0.0]]), trt.tensor([0, 2])
    >>> trt.nn.CrossEntropyLoss()(logits, classes)
    tensor(0.6691)
    >>> trt.nn.CrossEntropyLoss()(logits, trt.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]))  # probabilities
    tensor(0.6691)
    >>> trt.nn.CrossEntropyLoss(label_smoothing=0.1, reduction="none")(logits, classes)
    tensor([0.3729, 1.0986])
    """

    __constants__ = ["ignore_index", "reduction", "label_smoothing"]

    def __init__(
        self,
        weight: Any = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Any, target: Any) -> Any:
        return F.cross_entropy(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class BCELoss(_WeightedLoss):
    """Binary cross entropy of probabilities; input, target: (*).

    Parameters:
        weight (Tensor or None, default None): the factor of each element's loss, broadcasts with the target; None is 1
        size_average (bool or None, default None): deprecated; use reduction
        reduce (bool or None, default None): deprecated; use reduction
        reduction (str, default 'mean'): 'mean', 'sum', or 'none' for a loss per element

    >>> import tensorrt_lite as trt
    >>> probabilities = trt.tensor([0.5, 0.8, 0.1])
    >>> trt.nn.BCELoss()(probabilities, trt.tensor([1.0, 1.0, 0.0]))
    tensor(0.3406)
    """

    def forward(self, input: Any, target: Any) -> Any:
        return F.binary_cross_entropy(input, target, weight=self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_Loss):
    """Binary cross entropy of sigmoid(input); input, target: (*).

    Parameters:
        weight (Tensor or None, default None): the factor of each element's loss, broadcasts with the target; None is 1
        size_average (bool or None, default None): deprecated; use reduction
        reduce (bool or None, default None): deprecated; use reduction
        reduction (str, default 'mean'): 'mean', 'sum', or 'none' for a loss per element
        pos_weight (Tensor or None, default None): the factor of the positive examples' loss, by class; None is 1

    >>> import tensorrt_lite as trt
    >>> logits, target = trt.tensor([0.0, 3.0, -2.0]), trt.tensor([1.0, 1.0, 0.0])
    >>> trt.nn.BCEWithLogitsLoss()(logits, target)
    tensor(0.2896)
    >>> trt.nn.BCEWithLogitsLoss(pos_weight=trt.tensor(2.0))(logits, target)
    tensor(0.5368)
    """

    def __init__(
        self,
        weight: Any = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        pos_weight: Any = None,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Any, target: Any) -> Any:
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, pos_weight=self.pos_weight, reduction=self.reduction
        )


class KLDivLoss(_Loss):
    """target * (log(target) - input); input: log-probabilities.

    Parameters:
        size_average (bool or None, default None): deprecated; use reduction
        reduce (bool or None, default None): deprecated; use reduction
        reduction (str, default 'mean'): 'mean', 'sum', 'none', or 'batchmean', the sum divided by the batch
        log_target (bool, default False): whether the target is given as logarithms

    >>> import tensorrt_lite as trt
    >>> log_q = trt.tensor([[0.5, 0.5], [0.9, 0.1]]).log()
    >>> p = trt.tensor([[0.75, 0.25], [0.9, 0.1]])
    >>> trt.nn.KLDivLoss(reduction="batchmean")(log_q, p)
    tensor(0.0654)
    >>> trt.nn.KLDivLoss(reduction="batchmean", log_target=True)(log_q, p.log())
    tensor(0.0654)
    """

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        log_target: bool = False,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Any, target: Any) -> Any:
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class PoissonNLLLoss(_Loss):
    """Negative log-likelihood of a Poisson distribution with (log) rate input.

    Parameters:
        log_input (bool, default True): whether the input is the logarithm of the rate
        full (bool, default False): whether the constant part of the loss is added
        size_average (bool or None, default None): deprecated; use reduction
        eps (float, default 1e-08): added to the rate inside the logarithm
        reduce (bool or None, default None): deprecated; use reduction
        reduction (str, default 'mean'): 'mean', 'sum', or 'none' for a loss per element

    >>> import tensorrt_lite as trt
    >>> counts = trt.tensor([1.0, 4.0])
    >>> trt.nn.PoissonNLLLoss()(trt.tensor([0.0, 1.0]), counts)
    tensor(-0.1409)
    >>> trt.nn.PoissonNLLLoss(log_input=False, full=True)(trt.tensor([1.0, 3.0]), counts)
    tensor(1.3814)
    """

    __constants__ = ["log_input", "full", "eps", "reduction"]

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: bool | None = None,
        eps: float = 1e-8,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, log_input: Any, target: Any) -> Any:
        return F.poisson_nll_loss(
            log_input, target, log_input=self.log_input, full=self.full, eps=self.eps, reduction=self.reduction
        )


class GaussianNLLLoss(_Loss):
    """Negative log-likelihood of a normal distribution with mean input and variance var.

    Parameters:
        full (bool, default False): whether the constant part of the loss is added
        eps (float, default 1e-06): the smallest variance
        reduction (str, default 'mean'): 'mean', 'sum', or 'none' for a loss per element

    >>> import tensorrt_lite as trt
    >>> mean, target, var = trt.tensor([0.0, 1.0]), trt.tensor([1.0, 1.0]), trt.tensor([1.0, 4.0])
    >>> trt.nn.GaussianNLLLoss(reduction="none")(mean, target, var)
    tensor([0.5000, 0.6931])
    """

    __constants__ = ["full", "eps", "reduction"]

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(None, None, reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Any, target: Any, var: Any) -> Any:
        return F.gaussian_nll_loss(input, target, var, full=self.full, eps=self.eps, reduction=self.reduction)


class HuberLoss(_Loss):
    """d ** 2 / 2 where d = |input - target| < delta, else delta * (d - delta / 2).

    Parameters:
        reduction (str, default 'mean'): 'mean', 'sum', or 'none' for a loss per element
        delta (float, default 1.0): the difference up to which the loss is quadratic

    >>> import tensorrt_lite as trt
    >>> loss = trt.nn.HuberLoss(reduction="none", delta=2.0)
    >>> loss(trt.tensor([0.0, 1.0, 5.0]), trt.zeros(3))
    tensor([0.0000, 0.5000, 8.0000])
    """

    __constants__ = ["reduction", "delta"]

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input: Any, target: Any) -> Any:
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class SmoothL1Loss(_Loss):
    """d ** 2 / (2 beta) where d = |input - target| < beta, else d - beta / 2.

    Parameters:
        size_average (bool or None, default None): deprecated; use reduction
        reduce (bool or None, default None): deprecated; use reduction
        reduction (str, default 'mean'): 'mean', 'sum', or 'none' for a loss per element
        beta (float, default 1.0): the difference up to which the loss is quadratic

    >>> import tensorrt_lite as trt
    >>> loss = trt.nn.SmoothL1Loss(reduction="none", beta=2.0)
    >>> loss(trt.tensor([0.0, 1.0, 5.0]), trt.zeros(3))
    tensor([0.0000, 0.2500, 4.0000])
    """

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        beta: float = 1.0,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Any, target: Any) -> Any:
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class SoftMarginLoss(_Loss):
    """log(1 + exp(-target * input)).

    Parameters:
        size_average (bool or None, default None): deprecated; use reduction
        reduce (bool or None, default None): deprecated; use reduction
        reduction (str, default 'mean'): 'mean', 'sum', or 'none' for a loss per element

    >>> import tensorrt_lite as trt
    >>> trt.nn.SoftMarginLoss()(trt.tensor([2.0, -1.0, 0.0]), trt.tensor([1.0, -1.0, 1.0]))
    tensor(0.3778)
    """

    def forward(self, input: Any, target: Any) -> Any:
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class _MarginLoss(_Loss):
    __constants__ = ["margin", "reduction"]

    def __init__(
        self,
        margin: float = 0.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin


class HingeEmbeddingLoss(_MarginLoss):
    """x where target is 1, max(0, margin - x) where it is -1.

    Parameters:
        margin (float, default 1.0): the distance from which on dissimilar pairs add nothing
        size_average (bool or None, default None): deprecated; use reduction
        reduce (bool or None, default None): deprecated; use reduction
        reduction (str, default 'mean'): 'mean', 'sum', or 'none' for a loss per element

    >>> import tensorrt_lite as trt
    >>> distances, same = trt.tensor([0.2, 0.25, 3.0]), trt.tensor([1.0, -1.0, -1.0])
    >>> trt.nn.HingeEmbeddingLoss(reduction="none")(distances, same)
    tensor([0.2000, 0.7500, 0.0000])
    """

    def __init__(
        self,
        margin: float = 1.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(margin, size_average, reduce, reduction)

    def forward(self, input: Any, target: Any) -> Any:
        return F.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


class MarginRankingLoss(_MarginLoss):
    """max(0, -target * (input1 - input2) + margin).

    Parameters:
        margin (float, default 0.0): the distance that the loss asks for
        size_average (bool or None, default None): deprecated; use reduction
        reduce (bool or None, default None): deprecated; use reduction
        reduction (str, default 'mean'): 'mean', 'sum', or 'none' for a loss per element

    >>> import tensorrt_lite as trt
    >>> first, second = trt.tensor([3.0, 1.0]), trt.tensor([1.0, 2.0])
    >>> first_is_better = trt.tensor([1.0, 1.0])
    >>> trt.nn.MarginRankingLoss(margin=0.5, reduction="none")(first, second, first_is_better)
    tensor([0.0000, 1.5000])
    """

    def forward(self, input1: Any, input2: Any, target: Any) -> Any:
        return F.margin_ranking_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class CosineEmbeddingLoss(_MarginLoss):
    """1 - cos(input1, input2) where target is 1, max(0, cos - margin) where it is -1.

    Parameters:
        margin (float, default 0.0): the distance that the loss asks for
        size_average (bool or None, default None): deprecated; use reduction
        reduce (bool or None, default None): deprecated; use reduction
        reduction (str, default 'mean'): 'mean', 'sum', or 'none' for a loss per element

    >>> import tensorrt_lite as trt
    >>> x1, x2 = trt.tensor([[1.0, 0.0], [1.0, 0.0]]), trt.tensor([[0.0, 1.0], [3.0, 4.0]])
    >>> trt.nn.CosineEmbeddingLoss(margin=0.1, reduction="none")(x1, x2, trt.tensor([1.0, -1.0]))
    tensor([1.0000, 0.5000])
    """

    def forward(self, input1: Any, input2: Any, target: Any) -> Any:
        return F.cosine_embedding_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class MultiLabelMarginLoss(_Loss):
    """Hinge between true and other classes; input: (N, C), target: the true classes followed by -1.

    Parameters:
        size_average (bool or None, default None): deprecated; use reduction
        reduce (bool or None, default None): deprecated; use reduction
        reduction (str, default 'mean'): 'mean', 'sum', or 'none' for a loss per element

    >>> import tensorrt_lite as trt
    >>> scores = trt.tensor([[0.5, 0.25, 1.0, 0.0]])
    >>> trt.nn.MultiLabelMarginLoss()(scores, trt.tensor([[2, 0, -1, -1]]))  # classes 2 and 0 are true
    tensor(0.3750)
    """

    def forward(self, input: Any, target: Any) -> Any:
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """Mean over classes of binary cross entropy with logits; input, target: (N, C).

    Parameters:
        weight (Tensor or None, default None): the factor of each class's loss, (C); None is 1
        size_average (bool or None, default None): deprecated; use reduction
        reduce (bool or None, default None): deprecated; use reduction
        reduction (str, default 'mean'): 'mean', 'sum', or 'none' for a loss per element

    >>> import tensorrt_lite as trt
    >>> logits, labels = trt.tensor([[2.0, -1.0, 0.0]]), trt.tensor([[1.0, 0.0, 1.0]])
    >>> trt.nn.MultiLabelSoftMarginLoss()(logits, labels)
    tensor(0.3778)
    """

    def forward(self, input: Any, target: Any) -> Any:
        return F.multilabel_soft_margin_loss(input, target, weight=self.weight, reduction=self.reduction)


class MultiMarginLoss(_WeightedLoss):
    """Multi-class hinge; input: (N, C), target: (N).

    Parameters:
        p (int, default 1): the exponent of each term, 1 or 2
        margin (float, default 1.0): the distance that the loss asks for
        weight (Tensor or None, default None): the factor of each class's loss, (C); None is 1
        size_average (bool or None, default None): deprecated; use reduction
        reduce (bool or None, default None): deprecated; use reduction
        reduction (str, default 'mean'): 'mean', 'sum', or 'none' for a loss per element

    >>> import tensorrt_lite as trt
    >>> scores, classes = trt.tensor([[0.5, 2.0, 0.0], [1.0, 1.0, 3.0]]), trt.tensor([1, 0])
    >>> trt.nn.MultiMarginLoss(reduction="none")(scores, classes)
    tensor([0.0000, 1.3333])
    """

    __constants__ = ["p", "margin", "reduction"]

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Any = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ValueError("only p == 1 and p == 2 supported")
        if weight is not None and weight.dim() != 1:
            raise ValueError(f"weight must be None or 1-dimensional, got {weight.dim()}D")
        self.p = p
        self.margin = margin

    def forward(self, input: Any, target: Any) -> Any:
        return F.multi_margin_loss(
            input, target, p=self.p, margin=self.margin, weight=self.weight, reduction=self.reduction
        )


class TripletMarginLoss(_Loss):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin); inputs: (N, D) or (D).

    Parameters:
        margin (float, default 1.0): the distance that the loss asks for
        p (float, default 2.0): the exponent of the distance's norm
        eps (float, default 1e-06): added to each difference
        swap (bool, default False): whether the nearer of anchor and positive counts as the distance to the negative
        size_average (bool or None, default None): deprecated; use reduction
        reduce (bool or None, default None): deprecated; use reduction
        reduction (str, default 'mean'): 'mean', 'sum', or 'none' for a loss per element

    >>> import tensorrt_lite as trt
    >>> anchor, positive = trt.zeros(2, 2), trt.tensor([[3.0, 4.0], [0.0, 1.0]])
    >>> negative = trt.tensor([[0.0, 5.5], [6.0, 8.0]])
    >>> trt.nn.TripletMarginLoss(margin=1.0, reduction="none")(anchor, positive, negative)
    tensor([0.5000, 0.0000])
    """

    __constants__ = ["margin", "p", "eps", "swap", "reduction"]

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        if margin <= 0:
            raise ValueError(f"TripletMarginLoss: expected margin to be greater than 0, got {margin} instead")
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: Any, positive: Any, negative: Any) -> Any:
        return F.triplet_margin_loss(
            anchor,
            positive,
            negative,
            margin=self.margin,
            p=self.p,
            eps=self.eps,
            swap=self.swap,
            reduction=self.reduction,
        )


class TripletMarginWithDistanceLoss(_Loss):
    """TripletMarginLoss with any distance function of two tensors.

    Parameters:
        distance_function (function or None, default None): the distance of two batches, (N); None is PairwiseDistance()
        margin (float, default 1.0): the distance that the loss asks for
        swap (bool, default False): whether the nearer of anchor and positive counts as the distance to the negative
        reduction (str, default 'mean'): 'mean', 'sum', or 'none' for a loss per element

    >>> import tensorrt_lite as trt
    >>> largest_difference = lambda x, y: (x - y).abs().amax(dim=-1)
    >>> loss = trt.nn.TripletMarginWithDistanceLoss(distance_function=largest_difference, margin=2.0)
    >>> loss(trt.zeros(1, 2), trt.tensor([[3.0, 4.0]]), trt.tensor([[5.0, 1.0]]))
    tensor(1.)
    """

    __constants__ = ["margin", "swap", "reduction"]

    def __init__(
        self, *, distance_function: Any = None, margin: float = 1.0, swap: bool = False, reduction: str = "mean"
    ) -> None:
        super().__init__(reduction=reduction)
        if margin <= 0:
            raise ValueError(
                f"TripletMarginWithDistanceLoss: expected margin to be greater than 0, got {margin} instead"
            )
        if distance_function is None:
            distance_function = _PairwiseDistance()
        self.distance_function = distance_function
        self.margin = margin
        self.swap = swap

    def forward(self, anchor: Any, positive: Any, negative: Any) -> Any:
        return F.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )


class CTCLoss(_Loss):
    """Connectionist temporal classification; log_probs: (T, N, C) or (T, C), targets: (N, S) or concatenated.

    Parameters:
        blank (int, default 0): the class that means no label
        reduction (str, default 'mean'): 'mean', 'sum', or 'none' for a loss per element
        zero_infinity (bool, default False): whether infinite losses, of inputs shorter than their targets, become 0

    >>> import tensorrt_lite as trt
    >>> log_probs = trt.full((10, 2, 5), 0.2).log()  # T = 10 steps, N = 2, C = 5 with the blank 0
    >>> targets, target_lengths = trt.tensor([[1, 2, 2, 4], [3, 1, 0, 0]]), trt.tensor([4, 2])
    >>> loss = trt.nn.CTCLoss(reduction="none")
    >>> loss(log_probs, targets, input_lengths=trt.tensor([10, 8]), target_lengths=target_lengths)
    tensor([8.9343, 7.5284])
    """

    __constants__ = ["blank", "reduction"]

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__(reduction=reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(self, log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any) -> Any:
        return F.ctc_loss(
            log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity
        )


class LinearCrossEntropyLoss(_WeightedLoss):
    """linear_cross_entropy() with the linear map as its own layer. input: (N, in_features) or (in_features), target: (N, *out_features), or
    probabilities (N, num_classes, *out_features).

    Parameters:
        in_features (int): the number of features of the input
        num_classes (int): C, how many classes
        out_features (tuple of ints, default ()): the shape of the predictions of each sample beside the classes
        bias (bool, default False): whether the linear layer has a bias
        device (device or None, default None): where the parameters are; None is the default device
        dtype (dtype or None, default None): the type of the parameters; None is the default
        reduction (str, default 'mean'): 'mean', 'sum', or 'none' for a loss per element
        weight (Tensor or None, default None): the factor of each class's loss, (C); None is 1
        ignore_index (int or None, default None): the class that adds nothing to the loss
        label_smoothing (float, default 0.0): the share of the target that is spread over all classes, from 0 to 1
        options (default None): not used

    >>> import tensorrt_lite as trt
    >>> loss = trt.nn.LinearCrossEntropyLoss(in_features=8, num_classes=100)
    >>> hidden, tokens = trt.zeros(4, 8), trt.tensor([5, 0, 99, 7])
    >>> round(loss(hidden, tokens).item(), 4)  # log(100)
    4.6052
    >>> [(name, tuple(p.shape)) for name, p in loss.named_parameters()]
    [('linear.weight', (100, 8))]
    """

    __constants__ = ["num_classes", "out_features", "reduction", "ignore_index", "label_smoothing"]

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Any = None,
        dtype: Any = None,
        reduction: str = "mean",
        weight: Any = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: Any = None,
    ) -> None:
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise RuntimeError(f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}")
        if label_smoothing < 0 or label_smoothing > 1.0:
            raise RuntimeError(f"expected label_smoothing to be in range [0, 1], got {label_smoothing}")
        super().__init__(weight=weight, reduction=reduction)
        self.num_classes = num_classes
        self.out_features = out_features
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        rows = num_classes
        for size in out_features:
            rows *= size
        self.linear = _Linear(in_features, rows, bias=bias, device=device, dtype=dtype)
        self.options = options

    def forward(self, input: Any, target: Any) -> Any:
        shape = (self.num_classes, *self.out_features)
        bias = self.linear.bias
        return F.linear_cross_entropy(
            input,
            self.linear.weight.reshape((*shape, self.linear.in_features)),
            target,
            linear_bias=None if bias is None else bias.reshape(shape),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            options=self.options,
        )

    def extra_repr(self) -> str:
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, out_features={self.out_features}, "
            f"bias={self.linear.bias is not None}, reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )
