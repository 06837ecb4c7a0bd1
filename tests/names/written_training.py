"""Calls of optimizers, schedulers, data, autograd, processes and the transforms' odd names."""

from __future__ import annotations

from typing import Any

from .written import case, numbers, raised

# ---- optimizers: a few steps over a small problem, with the state that they keep


def trained(m: Any, f: Any, **options: Any) -> Any:
    model = m.nn.Linear(3, 2).double()
    with m.no_grad():
        for p in model.parameters():
            p.copy_(numbers(m, *p.shape) - 0.4)
    parameters = [model.weight] if f.__name__ == "Muon" else list(model.parameters())
    optimizer = f(parameters, **options)
    x, y = numbers(m, 5, 3), numbers(m, 5, 2) ** 2
    losses = []

    def closure() -> Any:
        optimizer.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        losses.append(loss.item())
        return loss

    for _ in range(5):
        optimizer.step(closure)
    kept = optimizer.state_dict()
    return losses, list(model.parameters()), sorted(str(k) for k in kept["param_groups"][0]), [sorted(map(str, s)) for s in kept["state"].values()]


case("optim", "ASGD Adadelta Adafactor Adagrad Adam AdamW Adamax LBFGS Muon NAdam RAdam RMSprop Rprop", lambda m, f: (trained(m, f), trained(m, f, lr=0.05)) if f.__name__ != "LBFGS" else trained(m, f, max_iter=4, line_search_fn="strong_wolfe"))
case("optim", "SGD", lambda m, f: (trained(m, f), trained(m, f, lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.01)))


def sparse_adam(m: Any, f: Any) -> Any:
    table = m.nn.Parameter(numbers(m, 5, 2))
    optimizer = f([table], lr=0.1)
    for step in range(3):
        optimizer.zero_grad()
        m.nn.functional.embedding(m.tensor([step, 2, step]), table, sparse=True).pow(2).sum().backward()
        optimizer.step()
    return table


def own_optimizer(m: Any, f: Any) -> Any:
    class Plain(f):  # type: ignore[misc]
        def __init__(self, params: Any, lr: float) -> None:
            super().__init__(params, {"lr": lr})

        @m.no_grad()
        def step(self, closure: Any = None) -> None:
            for group in self.param_groups:
                for p in group["params"]:
                    p.sub_(group["lr"] * p.grad)

    p = m.nn.Parameter(numbers(m, 3))
    optimizer = Plain([p], 0.5)
    (p * p).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    return p, p.grad, optimizer.state_dict(), repr(optimizer), raised(lambda: Plain([], 0.1))


case("optim", "SparseAdam", sparse_adam)
case("optim", "Optimizer", own_optimizer)

# ---- schedulers: the rates of some epochs, and their state


def rates(m: Any, f: Any, *arguments: Any, metric: bool = False, **options: Any) -> Any:
    p = m.nn.Parameter(numbers(m, 2))
    optimizer = m.optim.SGD([{"params": [p], "lr": 0.3}], lr=0.1, momentum=0.9)
    given = [a(optimizer, m) if callable(a) and getattr(a, "builds", False) else a for a in arguments]
    scheduler = f(*given) if f.__name__ == "ChainedScheduler" else f(optimizer, *given, **options)
    found = []
    for epoch in range(9):
        optimizer.step()
        scheduler.step(*((1.0 + 0.01 * (epoch > 2) * epoch,) if metric else ()))
        found.append((optimizer.param_groups[0]["lr"], optimizer.param_groups[0].get("momentum")))
    kept = scheduler.state_dict()
    return found, scheduler.get_last_lr(), sorted(kept), kept.get("last_epoch")


def schedulers(optimizer: Any, m: Any) -> list[Any]:
    s = m.optim.lr_scheduler
    return [s.ConstantLR(optimizer, 0.5, 2), s.ExponentialLR(optimizer, 0.9)]


schedulers.builds = True  # type: ignore[attr-defined]

S = "optim.lr_scheduler"
case(S, "ChainedScheduler", lambda m, f: rates(m, f, schedulers))
case(S, "SequentialLR", lambda m, f: rates(m, f, schedulers, milestones=[3]))
case(S, "ConstantLR LinearLR", lambda m, f: rates(m, f, 0.4, total_iters=4))
case(S, "CosineAnnealingLR", lambda m, f: rates(m, f, 5, eta_min=0.01))
case(S, "CosineAnnealingWarmRestarts", lambda m, f: rates(m, f, 2, T_mult=2))
case(S, "CyclicLR", lambda m, f: rates(m, f, 0.1, 0.5, step_size_up=2, mode="triangular2"))
case(S, "ExponentialLR", lambda m, f: rates(m, f, 0.8))
case(S, "LambdaLR MultiplicativeLR", lambda m, f: rates(m, f, lambda epoch: 0.9**epoch))
case(S, "MultiStepLR", lambda m, f: rates(m, f, [2, 5], gamma=0.3))
case(S, "OneCycleLR", lambda m, f: rates(m, f, max_lr=0.5, total_steps=12))
case(S, "PolynomialLR", lambda m, f: rates(m, f, total_iters=6, power=2.0))
case(S, "ReduceLROnPlateau", lambda m, f: rates(m, f, patience=1, factor=0.5, metric=True))
case(S, "StepLR", lambda m, f: rates(m, f, 3, gamma=0.2))
case(S, "LRScheduler", lambda m, f: rates(m, type("Half", (f,), {"get_lr": lambda self: [g["lr"] * 0.5 for g in self.optimizer.param_groups]})))

# ---- data

D = "utils.data"


def numbered(m: Any, n: int = 7) -> Any:
    class Squares(m.utils.data.Dataset):  # type: ignore[misc]
        def __len__(self) -> int:
            return n

        def __getitem__(self, i: int) -> Any:
            return m.tensor(i * i), i

    return Squares()


def stream(m: Any, f: Any, n: int = 3) -> Any:
    return type("Stream", (f,), {"__iter__": lambda self: iter(range(n))})()


case(D, "DataLoader", lambda m, f: (list(f(numbered(m), batch_size=3)), list(f(numbered(m), batch_size=2, shuffle=True, drop_last=True)), len(f(numbered(m), 3)),
     list(f(numbered(m), batch_size=3, num_workers=1))))  # fmt: skip
case(D, "Dataset", lambda m, f: (len(numbered(m)), numbered(m)[3], len(numbered(m) + numbered(m, 2)), raised(lambda: f()[0])[0]))
case(D, "IterableDataset", lambda m, f: (list(stream(m, f)), list(m.utils.data.DataLoader(stream(m, f), batch_size=2)), list(stream(m, f) + stream(m, f))))
case(D, "ChainDataset", lambda m, f: list(f([stream(m, m.utils.data.IterableDataset), stream(m, m.utils.data.IterableDataset, 2)])))
case(D, "ConcatDataset", lambda m, f: (lambda d: (len(d), d[8], d[-1], raised(lambda: d[-20])[0]))(f([numbered(m), numbered(m, 3)])))
case(D, "StackDataset", lambda m, f: (lambda d: (len(d), d[2], f(a=numbered(m))[1]))(f(numbered(m), numbered(m))))
case(D, "Subset", lambda m, f: (lambda d: (len(d), d[1], d.__getitems__([0, 1])))(f(numbered(m), [5, 2])))
case(D, "TensorDataset", lambda m, f: (lambda d: (len(d), d[1], raised(lambda: f(m.ones(2), m.ones(3)))[0]))(f(m.arange(4), m.arange(4) * 2)))
case(D, "random_split", lambda m, f: [list(s.indices) for s in f(numbered(m), [0.5, 0.3, 0.2])] + [list(s.indices) for s in f(range(5), [2, 3], m.Generator().manual_seed(4))])
case(D, "Sampler", lambda m, f: list(type("Odd", (f,), {"__iter__": lambda self: iter([1, 3])})()))
case(D, "BatchSampler", lambda m, f: (list(f(range(7), 3, False)), list(f(range(7), 3, True)), len(f(range(7), 3, True))))
case(D, "SequentialSampler", lambda m, f: (list(f(range(4))), len(f(range(4)))))
case(D, "RandomSampler", lambda m, f: (list(f(range(6))), list(f(range(6), replacement=True, num_samples=40)), len(f(range(6)))))
case(D, "SubsetRandomSampler", lambda m, f: (list(f([3, 5, 8, 9])), len(f([1]))))
case(D, "WeightedRandomSampler", lambda m, f: (list(f([0.1, 0.5, 0.4], 6)), list(f([0.1, 0.5, 0.4], 3, replacement=False))))
case(D, "DistributedSampler", lambda m, f: [list(f(range(7), num_replicas=2, rank=r, seed=3)) for r in (0, 1)])
case(D, "default_collate", lambda m, f: f([{"a": m.ones(2), "b": (1, 2.5), "c": "x"}, {"a": m.zeros(2), "b": (3, 4.5), "c": "y"}]))
case(D, "default_convert", lambda m, f: f([__import__("numpy").arange(3), "x", {"a": 2}]))
case(D, "get_worker_info", lambda m, f: f())
case(D, "DataChunk", lambda m, f: (lambda c: (list(c), list(c.raw_iterator()), c.as_str()))(f([1, 2, 3])))
case(D, "IterDataPipe", lambda m, f: (lambda p: (list(p), list(p.map(lambda v: v * 2)), isinstance(p, m.utils.data.IterableDataset)))(stream(m, f)))
case(D, "MapDataPipe", lambda m, f: (lambda p: (list(p.map(lambda v: v + 1)), len(p)))(type("P", (f,), {"__getitem__": lambda self, i: (10, 20)[i], "__len__": lambda self: 2})()))
case(D, "DFIterDataPipe", lambda m, f: issubclass(f, m.utils.data.IterDataPipe))
case(D, "guaranteed_datapipes_determinism", lambda m, f: [(f(v), True)[1] for v in (True, False)] if False else _entered(f))
case(D, "functional_datapipe", lambda m, f: _functional(m, f))
case(D, "non_deterministic", lambda m, f: _non_deterministic(m, f))


def _entered(f: Any) -> Any:
    with f() as inside:
        return inside


def _functional(m: Any, f: Any) -> Any:
    pipe = m.utils.data.IterDataPipe
    kind = type("Tripled", (pipe,), {"__init__": lambda self, source: setattr(self, "source", source), "__iter__": lambda self: (3 * v for v in self.source)})
    if not hasattr(pipe, "functions") or "tripled_by_name_test" not in pipe.functions:
        f("tripled_by_name_test")(kind)
    return list(stream(m, pipe).tripled_by_name_test())


def _non_deterministic(m: Any, f: Any) -> Any:
    made = f(lambda *arguments: False)(m.utils.data.IterDataPipe.__class__("Pipe", (m.utils.data.IterDataPipe,), {"__iter__": lambda self: iter([1])}))
    return raised(lambda: list(made())) if callable(made) else None


# ---- autograd

A = "autograd"


def own_function(m: Any, f: Any) -> Any:
    class Cube(f):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 3 * x * x * g

    x = numbers(m, 3, grad=True)
    y = Cube.apply(x)
    y.sum().backward()
    return y, x.grad, type(y.grad_fn).__name__


def cube(x: Any) -> Any:
    return x**3


def anomalous(m: Any, f: Any) -> Any:
    x = m.zeros(1, requires_grad=True)
    with f() if f.__name__ == "detect_anomaly" else f(True):
        return raised(lambda: (x.sqrt() * 0).sum().backward())[0], m.is_anomaly_enabled()


case(A, "Function", own_function)
case(A, "NestedIOFunction", lambda m, f: issubclass(f, m.autograd.Function))
case(A, "Variable", lambda m, f: (lambda v: (v, v.requires_grad, isinstance(m.ones(1), f), f(m.ones(1)).requires_grad))(f(m.ones(2), requires_grad=True)))
case(A, "variable", lambda m, f: (f.Variable if hasattr(f, "Variable") else m.autograd.Variable)(m.ones(1)))
case(A, "backward", lambda m, f: (lambda x: (f((x**3).sum()), x.grad, f([x * 2], [m.ones(3, dtype=m.float64)]), x.grad))(numbers(m, 3, grad=True)))
case(A, "grad", lambda m, f: (lambda x: (f((x**3).sum(), x), f(f((x**3).sum(), x, create_graph=True)[0].sum(), x), raised(lambda: f(m.ones(1), x))[0]))(numbers(m, 3, grad=True)))
case(A, "gradcheck gradgradcheck", lambda m, f: (f(cube, (numbers(m, 3, grad=True),)), raised(lambda: f(lambda x: (x.detach() * x).sum(), (numbers(m, 3, grad=True),)))[0] if f.__name__ == "gradcheck" else 0))
case(A, "detect_anomaly set_detect_anomaly", anomalous)
case(A, "no_grad enable_grad inference_mode", lambda m, f: (lambda x: [_recorded(f, x), (x * 2).requires_grad, f()(lambda: m.is_grad_enabled())()])(numbers(m, 2, grad=True)))
case(A, "set_grad_enabled", lambda m, f: [_recorded(lambda v=v: f(v), numbers(m, 2, grad=True)) for v in (True, False)])
case(A, "set_multithreading_enabled", lambda m, f: _recorded(lambda: f(False), numbers(m, 2, grad=True)))
case(A, "enforce_grad_layout_policy", lambda m, f: _recorded(lambda: f(False), numbers(m, 2, grad=True)))


def _recorded(context: Any, x: Any) -> Any:
    with context():
        return (x * 2).requires_grad


# ---- processes

P = "multiprocessing"
case(P, "Array RawArray", lambda m, f: list(f("i", [1, 2, 3])))
case(P, "Value RawValue", lambda m, f: f("d", 2.5).value)
case(P, "AuthenticationError BufferTooShort ProcessError TimeoutError", lambda m, f: (issubclass(f, Exception), f.__mro__[1].__name__))
case(P, "Barrier", lambda m, f: f(2).parties)
case(P, "BoundedSemaphore Semaphore Lock RLock", lambda m, f: (lambda s: (s.acquire(), s.release()))(f()))
case(P, "Condition Event", lambda m, f: (lambda s: s.wait(0.001) if f.__name__ == "Event" else (s.acquire(), s.notify_all(), s.release()))(f()))
case(P, "Queue JoinableQueue SimpleQueue", lambda m, f: (lambda q: (q.put(m.arange(3)), q.get(), q.close())[1])(f()))
case(P, "Pipe", lambda m, f: (lambda a, b: (a.send(m.arange(3)), b.recv(), a.close(), b.close())[1])(*f()))
case(P, "Process", lambda m, f: (lambda p: (p.start(), p.join(), p.exitcode))(f(target=max, args=(1, 2))))
case(P, "Pool", lambda m, f: _pooled(f))
case(P, "Manager", lambda m, f: callable(f))
case(P, "active_children", lambda m, f: isinstance(f(), list))
case(P, "allow_connection_pickling freeze_support init_reductions", lambda m, f: f())
case(P, "cpu_count", lambda m, f: f())
case(P, "current_process", lambda m, f: f().name)
case(P, "parent_process", lambda m, f: f())
case(P, "get_all_sharing_strategies get_all_start_methods get_sharing_strategy", lambda m, f: sorted(f()))
case(P, "get_context", lambda m, f: (f("spawn").get_start_method(), raised(lambda: f("none"))))
case(P, "get_start_method", lambda m, f: f(allow_none=True) in (None, "fork", "spawn", "forkserver"))
case(P, "get_logger", lambda m, f: f().name)
case(P, "set_sharing_strategy", lambda m, f: (f("file_system"), m.multiprocessing.get_sharing_strategy(), f("file_descriptor"), raised(lambda: f("none"))[0]))
case(P, "set_start_method", lambda m, f: raised(lambda: f("none")))
case(P, "ProcessContext SpawnContext", lambda m, f: sorted(n for n in dir(f) if n in ("join", "pids")))
case(P, "ProcessRaisedException ProcessExitedException", lambda m, f: (issubclass(f, Exception), (lambda e: (e.error_index, e.error_pid))(f("text", 1, 2, 3) if "Raised" in f.__name__ and False else _process_error(f))))
case(P, "start_processes", lambda m, f: f(_child, args=(3,), nprocs=2, start_method="fork") if callable(f) else None)
case(P, "spawn", lambda m, f: raised(lambda: f(_child, args=(3,), nprocs=0, join=True)) is None if callable(f) else True)


def _process_error(f: Any) -> Any:
    return f("text", 1, 2) if "Raised" in f.__name__ else f("text", 1, 2, exit_code=3)


def _child(index: int, value: int) -> None:
    if index < 0 or value != 3:
        raise ValueError(index)


def _pooled(f: Any) -> Any:
    with f(1) as pool:
        return pool.map(abs, [-1, 2])


# ---- the odd names of the transforms

def _caught(error: Any, call: Any) -> Any:
    try:
        call()
    except error as caught:
        return str(caught)


case("linalg", "LinAlgError", lambda m, f: (issubclass(f, RuntimeError), _caught(f, lambda: m.linalg.inv(m.zeros(2, 2)))))
case("fft", "fftfreq rfftfreq", lambda m, f: (f(7), f(8, 0.5)))
case("special", "gammainc gammaincc", lambda m, f: f(numbers(m, 5) * 4, numbers(m, 5) * 6))


def validated(m: Any, f: Any) -> Any:
    """Pipes with annotations, checked."""
    pipe = m.utils.data.IterDataPipe
    kind = f.__name__

    if kind == "runtime_validation":
        return raised(lambda: f(validated))
    if kind == "argument_validation":
        return f(lambda source, n=2: (source, n))(pipe, n=3)[1], raised(lambda: f(lambda a: a)())
    with f():
        return True


def swapped(m: Any, f: Any) -> Any:
    def made(scale: float) -> Any:
        p = m.nn.Parameter(numbers(m, 3) * scale)
        optimizer = m.optim.Adam([p], lr=0.1)
        (p * p).sum().backward()
        optimizer.step()
        return p, optimizer

    (mine, optimizer), (other, second) = made(1.0), made(2.0)
    before = mine.detach().clone()
    with f(optimizer, {"p": other}, second.state_dict()):
        other.grad = m.ones(3, dtype=m.float64)
        optimizer.step()
        inside = optimizer.param_groups[0]["params"][0] is other
    return inside, other, (mine == before).all().item(), optimizer.param_groups[0]["params"][0] is mine


case(D, "argument_validation runtime_validation runtime_validation_disabled", validated)
case("optim", "swap_in_optimizer_params_and_state", swapped)
case(P, "log_to_stderr", lambda m, f: (lambda logger: (logger.name, logger.handlers.pop() is not None))(f()))
case(P, "set_executable", lambda m, f: f(__import__("sys").executable))
case(P, "set_forkserver_preload", lambda m, f: f(["__main__"]))
