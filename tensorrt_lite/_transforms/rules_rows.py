"""Rules that rows tell: by `dims`, which says which dimension of which operand goes where, or by what kind of operator it is.

`dims` has the operands in the order of the row's tensors, then `->` and the results: `n k, k m -> n m`. Words are dimensions:

    n            one dimension; the same letter is the same size. A letter that no result has is summed over (used up, where all operands begin with `...`).
    [n]          one that may be missing. A system of equations has `[k]`: its right side may be vectors.
    *            any number of dimensions. The operator cannot take more of them in front.
    ...          any number of leading dimensions, which broadcast: the batch is one more of them.
    dim          an argument's name: the dimension or dimensions that it names, [dim] where the result may lack them.
    perm(dims)   of a result: all dimensions in the order that the argument names.
    sizes(size)  of a result: the sizes are the argument; `... -> sizes(size)` where it may have more dimensions than the operand.
    strides(stride)  behind sizes(size): the strides are the argument.
    conj         before an operand: its conjugate is multiplied.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root as trt
from tensorrt_lite._C.core import python_key
from tensorrt_lite._declared import declarations, shapes
from tensorrt_lite._transforms import rules_dims, rules_layers, rules_products, rules_random
from tensorrt_lite._transforms.batching import Call, by_elements, names_of, padded, refuse_dynamic

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorrt_lite import Tensor

    Rule = Callable[[Call], Any]


_STARS = {"*", "..."}


class Pattern:
    """`dims` of a row. operands: {tensor: its words}; results: the words of each; named: argument names among the operands' words; made: among the results' alone."""

    def __init__(self, text: str, tensors: Sequence[str], arguments: Sequence[str]) -> None:
        left, _, right = text.partition("->")
        parts = [part.split() for part in left.split(",")]
        self.conjugated = {name for name, words in zip(tensors, parts) if "conj" in words}
        self.operands = {name: [w for w in words if w != "conj"] for name, words in zip(tensors, parts)}
        self.results = [part.split() for part in right.split(",")]
        self.named = tuple(dict.fromkeys(w for words in self.operands.values() for w in words if w in arguments))
        found = [w.strip("[]") for words in self.results for w in words]
        self.made = tuple(dict.fromkeys(w for w in found if w in arguments and w not in self.named))

    def function_of(self, name: str) -> str | None:
        """The argument of `sizes(...)` or `perm(...)`."""
        m = re.search(rf"\b{name}\((\w+)\)", " ".join(self.results[0]))
        return m and m[1]

    @property
    def summed(self) -> set[str]:
        """Letters that no result has."""
        kept = {w for words in self.results for w in words}
        return {w for words in self.operands.values() for w in words if w.isalpha() and w not in kept and w not in self.named}


@cache
def derived(name: str) -> Rule | None:
    """The rule of an operator without a function of its own."""
    if name not in declarations.names() and name + "_" not in declarations.names():
        return None
    row = declarations.of(name if name in declarations.names() else name + "_")
    if row.dims:
        return by_pattern(pattern_of(name, row.dims))
    names = names_of(name)
    if "generator" in names:
        return rules_random.fill if row.variants == ("inplace",) else rules_random.sample
    if row.kind == "structured" and names[0] == "self" and "dim" in names:
        return rules_dims.by_dims(("self",), ("dim",))
    if row.shape_rule is None and row.kind == "function":
        return refuse_dynamic
    return None


def pattern_of(name: str, text: str) -> Pattern:
    names = names_of(name)
    return Pattern(text, [n for n, kind in zip(names, python_key.row_types(name)) if kind.startswith("Tensor")], names)


def by_pattern(pattern: Pattern) -> Rule:
    """The rule that `dims` tells."""
    first = next(iter(pattern.operands.values()))
    tensors = tuple(pattern.operands)
    if pattern.named or pattern.made:
        return rules_dims.by_dims(tuple(t for t, words in pattern.operands.items() if "*" in words), pattern.named, pattern.made, pattern.results)
    if len(tensors) == len(pattern.results) == 1 and {w.strip("[]") for w in pattern.results[0]} <= {w.strip("[]") for w in first if w.strip("[]").isalpha()}:
        return by_letters(pattern)
    if any("[" in w for w in first):
        some, every = (tuple(t for t, words in pattern.operands.items() if ("[" in words[0]) == single) for single in (True, False))
        return rules_layers.by_images(len(first) - 2, some, pattern.function_of("sizes"), every)
    if argument := pattern.function_of("perm"):
        return by_permutation(argument)
    if (argument := pattern.function_of("sizes")) and first in (["*"], ["..."]):
        return by_sizes(argument, first == ["..."], pattern.function_of("strides"))
    factors = [words for words in pattern.operands.values() if pattern.summed & set(words)]
    if len(factors) == 2 and not all(words[0] == "..." for words in factors):
        return by_product(pattern)
    if first[0].isalpha():
        return by_fold(pattern)
    if len(tensors) == 1 and first == ["..."]:
        return rules_dims.by_leading(tensors[0])
    rule = rules_products.by_matrices(*((t, len(words) - 1) for t, words in pattern.operands.items()))
    optional = [t for t, words in pattern.operands.items() if words[-1] == "[k]"]
    return by_system(rule, optional[0], pattern) if optional else rule


def by_permutation(argument: str) -> Rule:
    """The rule of an operator whose argument names all dimensions in a new order."""

    def run(call: Call) -> Any:
        tensor = names_of(call.name)[0]
        rank = call.rank(tensor)
        return call.run(**{tensor: call.front(tensor), argument: [0, *(rules_dims.shifted(d, rank) for d in call[argument])]})

    return run


def by_sizes(argument: str, wider: bool, strides: str | None) -> Rule:
    """The rule of an operator whose argument has the sizes of the result. wider: they may be more than the operand's. strides: an argument with those."""

    def run(call: Call) -> Any:
        tensor = names_of(call.name)[0]
        x = call.front(tensor)
        element = [shapes.Spec(x.shape[1:], x.dtype) if i == call.position(tensor) else v for i, v in enumerate(call.values)]
        size = [*shapes.infer(call.name, *element)[0].shape]  # without -1; the errors are those of an element
        given = list(call.values)
        given[call.position(tensor)] = padded(x, len(size)) if wider else x
        given[call.position(argument)] = [call.size, *size]
        if strides is not None:  # of an element in its memory, as a wrapper has them
            given[call.position(strides)] = [x.stride(0), *call[strides]]
            if call["storage_offset"] is None:
                given[call.position("storage_offset")] = x.storage_offset()
        return call.run(*given)

    return run


def by_fold(pattern: Pattern) -> Rule:
    """The rule of an operator on several items: those of all the batch are one after another."""
    item = next(iter(pattern.operands.values()))[0]
    size = pattern.function_of("sizes")

    def run(call: Call) -> Any:
        if any(call.batched(t) for t, words in pattern.operands.items() if words[0] != item):
            return by_elements(call)
        given = {t: rules_layers.fold(call.front(t)) for t, words in pattern.operands.items() if words[0] == item and call[t] is not None}
        if size is not None:
            given[size] = [call[size][0] * call.size, *call[size][1:]]
        return rules_layers.unfold(call.run(**given), call.size)

    return run


def by_letters(pattern: Pattern) -> Rule:
    """The rule of an operator that permutes the dimensions of one tensor, or sums over those that the result lacks; a letter twice is a diagonal."""
    (tensor,), (words,), result = pattern.operands, pattern.operands.values(), pattern.results[0]

    def run(call: Call) -> Any:
        x, rank = call.front(tensor), call.rank(tensor)
        if not len([w for w in words if "[" not in w]) <= rank <= len(words) and rank:
            return by_elements(call)
        letters = [w.strip("[]") for w in words if "[" not in w or rank == len(words)][:rank]
        while len(set(letters)) < len(letters):
            i = next(i for i, w in enumerate(letters) if w in letters[i + 1 :])
            j = letters.index(letters[i], i + 1)
            x = trt.diagonal(x, 0, i + 1, j + 1)
            letters = [w for k, w in enumerate(letters) if k not in (i, j)] + [letters[i]]
        out = [w.strip("[]") for w in result if w.strip("[]") in letters]
        gone = [i + 1 for i, w in enumerate(letters) if w not in out]
        if gone:
            x, letters = x.sum(gone), [w for w in letters if w in out]
        return x.permute([0, *(letters.index(w) + 1 for w in out)])

    return run


def by_system(rule: Rule, right: str, pattern: Pattern) -> Rule:
    """The rule of a system of equations, whose right side may be a vector or a batch of vectors."""
    left = next(t for t in pattern.operands if t != right)

    def run(call: Call) -> Any:
        a, b = (rules_dims.element_shape(call, t) for t in (left, right))
        if not (len(b) == 1 or (len(b) == len(a) - 1 and b == a[:-1])):
            return rule(call)
        i = call.position(right)
        call.values[i] = call.front(right).unsqueeze(-1)
        call.dims[i] = 0
        result = rule(call)
        if isinstance(result, tuple):
            return tuple(x.squeeze(-1) if words[-1] == "[k]" else x for x, words in zip(result, pattern.results))
        return result.squeeze(-1)

    return run


# ---- sums of products ------------------------------------------------------------------------------------------------


def by_product(pattern: Pattern) -> Rule:
    """The rule of a sum of products of two operands, to which a third may be added: `beta * self + alpha * product`."""
    a, b = (t for t, words in pattern.operands.items() if pattern.summed & set(words))
    added = next((t for t in pattern.operands if t not in (a, b)), None)
    result = pattern.results[0]

    leading = all(words[0] == "..." for words in (pattern.operands[a], result) if words)

    def run(call: Call) -> Any:
        if leading and result and not call.batched(b) and not (added and call.batched(added)):
            return call.run(**{a: call.front(a)})
        letters = {t: _letters(pattern.operands[t], call.rank(t)) for t in (a, b)}
        if any(found is None for found in letters.values()) or not _agree(call, letters):
            return by_elements(call)  # it refuses, or makes something else of these ranks
        out = _letters(result, 0, letters[a]) if _STARS & set(result) else result
        kind = shapes.rules()[call.name][1](*call.values)
        x, y = (call[t].conj() if t in pattern.conjugated else call[t] for t in (a, b))
        product = contract(call, (x, call.dims[call.position(a)], letters[a]), (y, call.dims[call.position(b)], letters[b]), out, kind)
        return product if added is None or call[added] is None else _added(call, added, product, len(out))

    return run


def _letters(words: list[str], rank: int, like: list[str] | None = None) -> list[str] | None:
    """A name for each dimension, `*` being as many as there are. None where the rank is another. like: the names that `*` has in an operand."""
    star = next(iter(_STARS & set(words)), None)
    if star is None:
        return list(words) if len(words) == rank else None
    stars = [w for w in like if w.startswith("*")] if like is not None else [f"*{i}" for i in range(rank - len(words) + 1)]
    if like is None and rank < len(words) - 1:
        return None
    i = words.index(star)
    return [*words[:i], *stars, *words[i + 1 :]]


def _agree(call: Call, letters: dict[str, Any]) -> bool:
    """Whether a letter has one size."""
    known: dict[str, int] = {}
    for tensor, names in letters.items():
        dim = call.dims[call.position(tensor)]
        own = [n for i, n in enumerate(call[tensor].shape) if i != dim]
        if any(known.setdefault(name, n) != n for name, n in zip(names, own)):
            return False
    return True


def contract(call: Call, left: tuple[Any, Any, list[str]], right: tuple[Any, Any, list[str]], out: list[str], kind: Any) -> Tensor:
    """The sum of products with the batch in front, as one matrix product or a batched one."""
    (x, dx, a), (y, dy, b) = left, right
    x, y = x.to(kind), y.to(kind)
    batch = "the batch"
    if dx is not None:
        x, a = x.movedim(dx, 0), [batch, *a]
    if dy is not None:
        y, b = y.movedim(dy, 0), [batch, *b]
        if dx is None and set(b) & set(out):
            x, a = x.unsqueeze(0).expand(call.size, *x.shape), [batch, *a]
    out = [batch, *out] if batch in a or batch in b else out
    shared = [w for w in out if w in a and w in b]
    rows, columns = [w for w in out if w in a and w not in b], [w for w in out if w in b and w not in a]
    summed = [w for w in a if w not in out]
    sizes = {**dict(zip(a, x.shape)), **dict(zip(b, y.shape))}
    x = _grouped(x, a, (shared, rows, summed), sizes)
    y = _grouped(y, b, (shared, summed, columns), sizes)
    result = trt.bmm(x, y) if shared else trt.mm(x[0], y[0])
    found = [*shared, *rows, *columns]
    result = result.reshape([sizes[w] for w in found]).permute([found.index(w) for w in out])
    return result if batch in out else result.unsqueeze(0).expand(call.size, *result.shape)


def _grouped(x: Tensor, names: list[str], groups: tuple[list[str], ...], sizes: dict[str, int]) -> Tensor:
    """The dimensions in the order of three groups, each one dimension."""
    order = [names.index(w) for group in groups for w in group]
    x = x if order == list(range(len(order))) else x.permute(order)
    flat = []
    for group in groups:
        n = 1
        for w in group:
            n *= sizes[w]
        flat.append(n)
    return x if list(x.shape) == flat else x.reshape(flat)


def _added(call: Call, name: str, product: Tensor, rank: int) -> Tensor:
    names = names_of(call.name)
    alpha, beta = (call[n] if n in names else 1 for n in ("alpha", "beta"))
    if alpha != 1:
        product = product * alpha
    if beta == 0:
        return product
    other = padded(call.front(name), rank) if call.batched(name) else call[name]
    return product + (other if beta == 1 else other * beta)
