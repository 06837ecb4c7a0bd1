"""The fuzzer's mode `gradients`: small graphs whose hooks, Functions and callers lie about gradients.

A program records some operators, most of them with backward kernels that trust their gradient, plants liars (hooks of tensors, Nodes
and leaves, Functions), and differentiates: backward, grad, with and without create_graph, from several threads over one graph, Nodes
called by hand. A liar returns a gradient of another shape, type or device, no tensor at all, or changes the one it was given in place;
what it has seen is kept, for other liars and for a thread that resizes it all the time. Afterwards the gradients of the leaves have
the leaves' metadata, and all of their elements are read.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any

SHAPES = [(), (1,), (3,), (8, 8), (4, 6), (2, 3, 4), (1, 2, 8, 8), (0, 3), (1, 2, 1, 2, 3)]
DTYPES = [*["float32"] * 8, "float64", "bfloat16", "complex64"]


class Planned(Exception):
    """What a hook raises."""


class Graph:
    """The tensors of one program, what its liars have seen, and the numbers it is drawn from."""

    def __init__(self, trt: Any, draw: random.Random, show: Callable[[str], None]) -> None:
        self.trt, self.draw, self.show = trt, draw, show
        self.seen: list[Any] = []
        self.changes_leaves = False
        self.dtype = getattr(trt, draw.choice(DTYPES))
        self.leaves = [self.leaf() for _ in range(draw.randint(1, 3))]
        self.tensors = list(self.leaves)

    def leaf(self, shape: tuple[int, ...] | None = None) -> Any:
        shape = self.draw.choice(SHAPES) if shape is None else shape
        return (self.trt.rand(shape).to(self.dtype) + 0.1).requires_grad_()

    def pick(self) -> Any:
        return self.draw.choice(self.tensors[-4:])

    def like(self, shape: tuple[int, ...]) -> Any:
        """A tensor of the shape: one of the graph, or a leaf."""
        found = [t for t in self.tensors if tuple(t.shape) == shape]
        if found and self.draw.random() < 0.7:
            return self.draw.choice(found)
        made = self.leaf(shape)
        self.leaves.append(made)
        return made

    # ---- operators

    def record(self) -> None:
        operators = [name for name in dir(self) if name.startswith("op_")]
        name = self.draw.choice(operators)
        result = getattr(self, name)(self.pick())
        for t in result if isinstance(result, (tuple, list)) else (result,):
            if isinstance(t, self.trt.Tensor) and t.requires_grad:
                self.tensors.append(t)
        self.show(f"{name[3:]} -> {[tuple(t.shape) for t in self.tensors[-2:]]}")

    def op_unary(self, x: Any) -> Any:
        return getattr(x, self.draw.choice(["exp", "sigmoid", "tanh", "sin", "relu", "neg", "abs", "square", "reciprocal", "clone", "sqrt"]))()

    def op_activation(self, x: Any) -> Any:
        functional = self.trt.nn.functional
        return getattr(functional, self.draw.choice(["gelu", "silu", "elu", "softplus", "hardtanh", "leaky_relu"]))(x)

    def op_binary(self, x: Any) -> Any:
        name = self.draw.choice(["add", "sub", "mul", "div", "pow", "maximum", "where", "addcmul", "atan2"])
        other = self.like(tuple(x.shape)) if self.draw.random() < 0.7 else self.leaf(())
        if name == "where":
            return self.trt.where(x.detach().abs() > 0.5, x, other)
        if name == "addcmul":
            return self.trt.addcmul(x, x, other)
        return getattr(self.trt, name)(x, other)

    def op_product(self, x: Any) -> Any:
        n = x.shape[-1]
        name = self.draw.choice(["linear", "matmul", "addmm", "bmm"])
        if name == "linear":
            return self.trt.nn.functional.linear(x, self.like((5, n)), self.like((5,)))
        if name == "matmul":
            return x @ self.like((n, 3))
        if name == "addmm":
            return self.trt.addmm(self.like((3,)), x.reshape(-1, n), self.like((n, 3)))
        y = x.reshape(1, -1, n)
        return self.trt.bmm(y, y.transpose(1, 2))

    def op_norm(self, x: Any) -> Any:
        functional, n = self.trt.nn.functional, x.shape[-1]
        name = self.draw.choice(["layer_norm", "rms_norm", "group_norm", "batch_norm", "normalize", "softmax", "log_softmax"])
        if name in ("layer_norm", "rms_norm"):
            return getattr(functional, name)(x, (n,), self.like((n,)))
        if name == "group_norm":
            return functional.group_norm(x, 1, self.like((x.shape[1],)))
        if name == "batch_norm":
            return functional.batch_norm(x, None, None, self.like((x.shape[1],)), None, True)
        return getattr(functional, name)(x, dim=-1)

    def op_image(self, x: Any) -> Any:
        functional = self.trt.nn.functional
        x = x if x.ndim == 4 else self.like((1, 2, 8, 8))
        name = self.draw.choice(["max_pool2d", "avg_pool2d", "conv2d", "interpolate", "pad"])
        if name == "conv2d":
            return functional.conv2d(x, self.like((3, x.shape[1], 3, 3)))
        if name == "interpolate":
            return functional.interpolate(x, scale_factor=2, mode="bilinear")
        return functional.pad(x, (1, 1)) if name == "pad" else getattr(functional, name)(x, 2)

    def op_loss(self, x: Any) -> Any:
        functional = self.trt.nn.functional
        name = self.draw.choice(["mse_loss", "smooth_l1_loss", "kl_div", "binary_cross_entropy_with_logits", "cross_entropy"])
        reduction = self.draw.choice(["none", "mean"])
        if name == "cross_entropy":
            return functional.cross_entropy(x, self.trt.zeros(x.shape[0], dtype=self.trt.int64), reduction=reduction)
        return getattr(functional, name)(x, self.like(tuple(x.shape)).detach(), reduction=reduction)

    def op_attention(self, x: Any) -> Any:
        q = x if x.ndim == 4 else self.like((1, 2, 8, 8))
        return self.trt.nn.functional.scaled_dot_product_attention(q, q, q)

    def op_reduce(self, x: Any) -> Any:
        return getattr(x, self.draw.choice(["sum", "mean", "std", "amax", "cumsum", "logsumexp", "norm", "sort", "topk", "max"]))(*self.draw.choice([(), (), (0,), (-1,)]))

    def op_view(self, x: Any) -> Any:
        name = self.draw.choice(["unbind", "split", "transpose", "reshape", "expand", "as_strided", "index", "cat", "stack", "narrow", "diagonal"])
        if name == "unbind":
            return x.unbind()
        if name == "split":
            return x.split(2)
        if name == "transpose":
            return x.transpose(0, -1)
        if name == "reshape":
            return x.reshape(-1)
        if name == "expand":
            return x.expand(3, *x.shape)
        if name == "as_strided":
            return x.as_strided((2, 2), (1, 2))
        if name == "index":
            return x[self.trt.tensor([0, 0])]
        if name in ("cat", "stack"):
            return getattr(self.trt, name)([x, self.like(tuple(x.shape)), x])
        return x.narrow(0, 0, 1) if name == "narrow" else x.diagonal()

    def op_linalg(self, x: Any) -> Any:
        square = self.like((4, 4)) + self.trt.eye(4, dtype=self.dtype)
        name = self.draw.choice(["qr", "inv", "det", "svd", "solve"])
        return self.trt.linalg.solve(square, square) if name == "solve" else getattr(self.trt.linalg, name)(square)

    def op_write(self, x: Any) -> Any:
        y = x.clone() if self.draw.random() < 0.7 else x
        target = y[:1] if y.ndim and self.draw.random() < 0.6 else y
        target.mul_(self.like(tuple(target.shape))) if self.draw.random() < 0.5 else target.exp_()
        return y

    def op_function(self, x: Any) -> Any:
        """A Function of one to three outputs whose backward lies now and then."""
        trt, graph, n = self.trt, self, self.draw.randint(1, 3)
        materialize, writes, lies = self.draw.random() < 0.5, self.draw.random() < 0.2, self.draw.random() < 0.5
        seed = self.draw.getrandbits(32)

        class Liar(trt.autograd.Function):
            @staticmethod
            def forward(ctx, a, b, number):
                ctx.set_materialize_grads(materialize)
                ctx.save_for_backward(a, b)
                if writes:
                    ctx.mark_dirty(a)
                    return a
                results = [a * number, "no tensor", (b + 1).round()][:n]
                if n == 3:
                    ctx.mark_non_differentiable(results[2])
                return results[0] if n == 1 else tuple(results)

            @staticmethod
            def backward(ctx, *grads):
                draw = random.Random(seed)
                result = [grads[0], ctx.saved_tensors[1], None]
                if lies:
                    result = [graph.lie(draw, g) for g in result]
                    return draw.choice([tuple(result), result[:2], result[0], tuple(result[:1]), (*result, None), None])
                return tuple(result)

        return Liar.apply(x.clone() if writes else x, self.like(tuple(x.shape)), 2)

    # ---- liars

    def junk(self, draw: random.Random, g: Any) -> Any:
        """Something else than the gradient `g`."""
        trt = self.trt
        shape = tuple(g.shape) if isinstance(g, trt.Tensor) else (2,)
        return draw.choice([
            lambda: trt.ones(*shape, 3), lambda: trt.ones(draw.choice([0, 1, 7, 100_000])), lambda: trt.ones(shape, dtype=draw.choice([trt.int64, trt.bool, trt.float64])),
            lambda: trt.ones(shape, dtype=trt.complex64), lambda: trt.ones(shape, device="meta"), lambda: trt.ones(()), lambda: trt.ones(1).expand(shape),
            lambda: trt.Tensor.__new__(trt.Tensor), lambda: draw.choice(self.seen or [None]), lambda: draw.choice(self.leaves), lambda: draw.choice(self.tensors),
            lambda: 3, lambda: None, lambda: "gradient", lambda: [g], lambda: (g, g), lambda: (), lambda: type("Sub", (trt.Tensor,), {})(g),
            lambda: trt.ones(shape).t() if len(shape) == 2 else g, lambda: trt.nn.Parameter(g.detach()),
        ])()  # fmt: skip

    def change(self, draw: random.Random, g: Any) -> None:
        """Change a tensor in place."""
        trt = self.trt
        draw.choice([
            lambda: g.resize_(draw.choice([0, 1, 100_000])), lambda: g.set_(), lambda: g.unsqueeze_(0), lambda: g.t_(), lambda: g.transpose_(0, -1),
            lambda: setattr(g, "data", trt.zeros(2, 2)), lambda: setattr(g, "data", g.new_zeros(g.shape)), lambda: setattr(g, "data", trt.zeros(g.shape, device="meta")),
            lambda: setattr(g, "data", trt.zeros(g.shape, dtype=trt.int64)), lambda: g.untyped_storage().resize_(draw.choice([0, 4, 1 << 20])), lambda: g.mul_(2),
            lambda: g.set_(trt.zeros(3)), lambda: g.requires_grad_(), lambda: g.detach_(), lambda: g.squeeze_(), lambda: g.zero_(),
        ])()  # fmt: skip

    def lie(self, draw: random.Random, g: Any) -> Any:
        """What a hook or Function does with one gradient, and what it returns for it."""
        kind = draw.random()
        if isinstance(g, self.trt.Tensor) and kind < 0.5:
            self.seen.append(g)
            try:
                self.change(draw, draw.choice(self.seen))
            except (RuntimeError, TypeError, IndexError, NotImplementedError):
                pass
            return draw.choice([None, g])
        if kind < 0.55:
            raise Planned
        return self.junk(draw, g) if kind < 0.8 else draw.choice([None, g])

    def hook(self) -> Callable[..., Any]:
        """A hook of any kind: on one gradient, on a Node's, behind a Node or behind an accumulation."""
        seed, honest = self.draw.getrandbits(32), self.draw.random() < 0.2

        def lying(*arguments: Any) -> Any:
            draw = random.Random(seed)
            given = arguments[0]
            if honest:
                self.seen.append(given)
                return None
            if isinstance(given, tuple):
                results = [self.lie(draw, g) for g in given]
                return draw.choice([tuple(results), tuple(results), tuple(g if r is None else r for g, r in zip(given, results)), results, results[:1], None])
            return self.lie(draw, given)

        return lying

    def plant(self) -> None:
        """Register hooks."""
        for _ in range(self.draw.choice([0, 1, 1, 2, 4])):
            t = self.draw.choice(self.tensors)
            kind = self.draw.choice(["tensor", "pre", "post", "leaf", "behind", "keep", "name"])
            self.show(f"{kind} hook on {t.grad_fn}")
            if kind == "tensor":
                t.register_hook(self.hook())
            elif kind == "leaf":
                self.draw.choice(self.leaves).register_hook(self.hook())
            elif kind == "behind":
                self.changes_leaves = True
                self.draw.choice(self.leaves).register_post_accumulate_grad_hook(self.hook())
            elif kind == "keep":
                t.retain_grad()
            elif t.grad_fn is not None:
                node = self.draw.choice([t.grad_fn, *[n for n, _ in t.grad_fn.next_functions if n is not None]])
                (node.register_prehook if kind == "pre" else node.register_hook)(self.hook())

    # ---- passes

    def call_by_hand(self) -> None:
        t = self.draw.choice(self.tensors[-5:])
        node = t.grad_fn if t.grad_fn is not None else (t * 1).grad_fn.next_functions[0][0]
        n = self.draw.randint(0, 4) if self.draw.random() < 0.1 else outputs_of(node)
        right = [self.trt.ones(t.shape, dtype=t.dtype) if self.draw.random() < 0.5 else self.junk(self.draw, t) for _ in range(n)]
        self.show(f"{node.name()} called with {n} arguments")
        with self.trt.no_grad() if self.draw.random() < 0.5 else self.trt.enable_grad():
            result = node(*right)
        for g in result if isinstance(result, tuple) else (result,):
            self.read(g)

    def differentiate(self) -> None:
        trt, draw = self.trt, self.draw
        root = draw.choice(self.tensors[-3:])
        keep, create = draw.random() < 0.5, draw.random() < 0.3
        weight = trt.ones(root.shape, dtype=root.dtype) if draw.random() < 0.9 else draw.choice([self.junk(draw, root), *self.seen[:1]])
        self.show(f"from {root.grad_fn}, retain_graph={keep}, create_graph={create}")
        if draw.random() < 0.6:
            root.backward(weight, retain_graph=keep or create, create_graph=create)
        else:
            inputs = [draw.choice(self.tensors) for _ in range(draw.randint(1, 3))]
            for g in trt.autograd.grad(root, inputs, weight, retain_graph=keep or create, create_graph=create, allow_unused=True):
                if g is not None:
                    self.read(g)
                    if g.requires_grad and draw.random() < 0.5:
                        g.abs().sum().backward()

    def read(self, t: Any) -> None:
        if isinstance(t, self.trt.Tensor) and t.device.type == "cpu" and t.numel() <= 10**6:
            t.detach().clone()
            repr(t)


def outputs_of(node: Any) -> int:
    """How many gradients a Node takes: it says so."""
    try:
        node(*[None] * 99)
    except TypeError as error:
        return int(str(error).split()[1])
    return 99


def run_program(trt: Any, table: Any, seed: int, number: int, show: Callable[[str], None] | None = None) -> str | None:
    """One program; what is wrong with it, or None. The table of operators is not used."""
    from tools.fuzz import ALLOWED

    draw = random.Random(f"{seed}:{number}")
    trt.manual_seed(draw.getrandbits(32))
    graph = Graph(trt, draw, show or (lambda text: None))
    wrong: list[str] = []

    def attempt(step: Callable[[], None]) -> None:
        try:
            step()
        except (*ALLOWED, Planned) as error:
            graph.show(f"    {type(error).__name__}: {str(error)[:300]}")
        except Exception as error:
            wrong.append(f"{step.__name__}: {type(error).__name__}: {error}")

    for _ in range(draw.randint(1, 6)):
        attempt(graph.record)
    attempt(graph.plant)
    stop = threading.Event()

    def disturb() -> None:
        own = random.Random(number)
        while not stop.is_set():
            if graph.seen:
                attempt(lambda: graph.change(own, own.choice(graph.seen)))

    threads = [threading.Thread(target=disturb)] if draw.random() < 0.1 else []
    if draw.random() < 0.1:
        threads += [threading.Thread(target=attempt, args=(graph.differentiate,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(draw.randint(1, 3)):
        attempt(draw.choice([graph.differentiate, graph.differentiate, graph.call_by_hand, graph.plant]))
    stop.set()
    for thread in threads:
        thread.join()
    for t in graph.leaves:
        if t.grad is not None:
            attempt(lambda t=t: graph.read(t.grad))
            same = tuple(t.grad.shape) == tuple(t.shape) and t.grad.dtype is t.dtype and t.grad.device == t.device
            if not same and not graph.changes_leaves and not any(other is t for other in graph.seen):
                wrong.append(f"the gradient of a leaf {t.dtype} {tuple(t.shape)} is {t.grad.dtype} {tuple(t.grad.shape)} on {t.grad.device}")
    return "; ".join(wrong) or None
