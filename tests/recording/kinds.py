"""The comparisons: each takes an operator of PyTorch's database or a model and returns a Report."""

from __future__ import annotations

import importlib
import itertools
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch.testing._internal.opinfo.core import OpInfo

import tensorrt_lite as trt
from tensorrt_lite._subclasses import DataDependentOutputException, DynamicOutputShapeException, FakeTensor, FakeTensorMode
from tests.conformance import opinfo
from tests.conformance.library import Library, Missing
from tests.conformance.vmap import Sample, results_of

from . import lists, models, record

DTYPES = (torch.float32, torch.int64, torch.bool, torch.complex64)
# What has no dense results, and what PyTorch's database calls with modules or files.
SKIPPED = {"to_sparse", "sparse.mm", "sparse.sampled_addmm"}
SCALARS = (bool, int, float, complex)


@dataclass
class Report:
    """passed, failed, refused: samples (or steps of a model). common, total: operators of both sequences, or calls."""

    passed: int = 0
    failed: int = 0
    refused: int = 0
    common: int = 0
    total: int = 0
    failures: list[str] = field(default_factory=list)
    seen: int = 0  # samples begun
    late: bool = False  # nothing fails in the samples that the suite takes

    @property
    def ok(self) -> bool:
        return not self.failed

    def fail(self, text: str) -> None:
        if not self.failed:
            self.late = self.seen > lists.SUITE
        self.failed += 1
        if len(self.failures) < 6:
            self.failures.append(text)


class Run:
    """One sample in one library: `forward()` and then `backward()`, as a program would call them."""

    def __init__(self, library: Library, function: Callable[..., Any], sample: Any) -> None:
        self.module, self.function = library.module, function
        self.sample = Sample(library, sample)
        self.convert(lambda x: x)

    def convert(self, make: Callable[[Any], Any]) -> None:
        """Have other tensors in place of the sample's."""
        self.given = [make(x) for x in self.sample.tensors]
        self.leaves = [x for x in self.given if x.requires_grad]

    def forward(self) -> list[Any]:
        self.module.manual_seed(3)
        self.value = self.sample.call(self.function, self.given)
        return results_of(self.value, self.module.Tensor)

    def backward(self, results: list[Any], seeds: list[Any]) -> list[Any]:
        wanted = [y for y in results if y.requires_grad]
        found = self.module.autograd.grad(wanted, self.leaves, seeds, allow_unused=True) if wanted and self.leaves else ()
        return [g for g in found if g is not None]

    def cotangents(self, results: list[Any]) -> list[Any]:
        return [self.module.ones_like(y) for y in results if y.requires_grad]


def samples_of(op: OpInfo, limit: int | None, dtypes: tuple[torch.dtype, ...] | None = None) -> Iterator[Any]:
    chosen = [d for d in dtypes or DTYPES if op.supports_dtype(d, "cpu")]
    for dtype in chosen if dtypes else chosen[:1]:
        yield from itertools.islice(opinfo.samples(op, dtype, requires_grad=op.supports_autograd and dtype in (torch.float32, torch.float64, torch.complex64)), limit)


def run_operator(op: OpInfo, limit: int | None, kinds: Iterable[str], dtypes: tuple[torch.dtype, ...] | None = None) -> dict[str, Report]:
    """Reports by kind, over up to `limit` samples."""
    reports, ours, theirs = {kind: Report() for kind in kinds}, Library(trt), Library(torch)
    try:
        functions = ours.function(op), theirs.function(op)
    except Missing:
        return reports
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, sample in enumerate(samples_of(op, limit, dtypes), 1):
            case = Case(opinfo.describe(sample)[:160], lambda: Run(ours, functions[0], sample), lambda: Run(theirs, functions[1], sample))
            for kind, report in reports.items():
                report.seen = number
                OPERATOR_KINDS[kind](report, case)
    return reports


class Case(NamedTuple):
    """A sample; `ours()` and `theirs()` make a fresh Run of it."""

    label: str
    ours: Callable[..., Run]
    theirs: Callable[..., Run]


def whole(run: Run) -> list[Any]:
    """Forward and backward pass; the results and gradients."""
    results = run.forward()
    return results + run.backward(results, run.cotangents(results))


# ---- sequences -----------------------------------------------------------------------------------------------------


def sequence(report: Report, case: Case) -> None:
    """The operators that a mode sees, beside those that PyTorch's mode sees."""
    here, there = case.ours(), case.theirs()
    try:
        expected = record.names_in_torch(lambda: whole(there))
    except Exception:  # noqa: BLE001 (what PyTorch refuses has no sequence)
        return
    try:
        actual = record.names_here(lambda: whole(here))
    except Exception as error:  # noqa: BLE001
        return report.fail(f"{case.label}: {type(error).__name__}: {str(error)[:200]}")
    compare_names(report, case.label, actual, expected)


def compare_names(report: Report, label: str, actual: list[str], expected: list[str]) -> None:
    common, total = record.agreement(actual, expected)
    report.common += common
    report.total += total
    if actual == expected:
        report.passed += 1
    else:
        report.fail(f"{label}: {record.difference(actual, expected)}")


def sequence_of_model(name: str) -> Report:
    report = Report()
    theirs, ours = models.build(torch, name), models.build(trt, name)
    for step in ("first step", "second step"):
        expected = record.names_in_torch(theirs.step)
        try:
            actual = record.names_here(ours.step)
        except Exception as error:  # noqa: BLE001
            report.fail(f"{step}: {type(error).__name__}: {str(error)[:200]}")
            continue
        compare_names(report, step, actual, expected)
    return report


# ---- calls issued again --------------------------------------------------------------------------------------------


def reissue(report: Report, case: Case) -> None:
    """Every recorded call, issued again from Python, gives the same bits."""
    run = case.ours()
    try:
        whole(case.ours())
    except Exception:  # noqa: BLE001 (what is refused has no calls)
        return
    note_calls(report, case.label, record.issue_again, lambda: whole(run))


def note_calls(report: Report, label: str, compare: Callable[[Callable[[], Any]], tuple[int, list[str]]], run: Callable[[], Any]) -> None:
    """Count what `compare` says of the calls that a mode sees in `run`: how many are right, and what is wrong with the others."""
    try:
        right, wrong = compare(run)
    except Exception as error:  # noqa: BLE001
        return report.fail(f"{label}: {type(error).__name__}: {str(error)[:200]}")
    report.common += right
    report.total += right + len(wrong)
    if wrong:
        report.fail(f"{label}: " + "; ".join(dict.fromkeys(wrong)))
    else:
        report.passed += 1


def reissue_of_model(name: str) -> Report:
    report, program = Report(), models.build(trt, name)
    for step in ("first step", "second step"):
        note_calls(report, step, record.issue_again, program.step)
    return report


# ---- fake tensors --------------------------------------------------------------------------------------------------


def facts(tensors: list[Any]) -> list[str]:
    """What a fake tensor shares with the real one: size, strides, type, device, place in its storage, and whose storage that is."""
    owners: dict[int, int] = {}
    found = []
    for i, t in enumerate(tensors):
        text = f"{str(t.dtype).removeprefix('torch.')}{list(t.shape)}, {t.device}, requires_grad={t.requires_grad}"
        if t.layout is trt.strided:
            owner = owners.setdefault(id(t.untyped_storage()), i)
            text += f", strides {tuple(t.stride())} from {t.storage_offset()}" + (f", storage of tensor {owner}" if t.numel() else "")
            text += (", conj" if t.is_conj() else "") + (", neg" if t.is_neg() else "")
        found.append(text)
    return found


def rest_of(value: Any) -> Any:
    """What a result is beside its tensors: numbers, and how they are put together."""
    if isinstance(value, trt.Tensor):
        return "tensor"
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [rest_of(x) for x in value]
    return value if isinstance(value, SCALARS) else type(value).__name__


def fake(report: Report, case: Case) -> None:
    """Results and gradients on fake tensors have the sizes, strides, types, devices and alias relations of the real ones."""
    real = case.ours()
    try:
        results = real.forward()
        gradients = real.backward(results, real.cotangents(results))
    except Exception:  # noqa: BLE001 (what is refused has no facts)
        return
    run = case.ours()
    try:
        with FakeTensorMode() as mode:
            run.convert(mode.from_tensor)
            fakes = run.forward()
            fake_gradients = run.backward(fakes, run.cotangents(fakes))
    except Exception as error:  # noqa: BLE001
        if isinstance(error, (DataDependentOutputException, DynamicOutputShapeException)) and refused_by_torch(case.theirs):
            report.refused += 1
            return
        return report.fail(f"{case.label}: {type(error).__name__}: {str(error)[:200]}")
    wrong = ""
    if not all(isinstance(t, FakeTensor) for t in fakes + fake_gradients):
        wrong = "a result is a real tensor"
    elif (a := rest_of(run.value)) != (b := rest_of(real.value)):
        wrong = f"{a} instead of {b}"
    else:
        for (what, a), (_, b) in zip(named_facts(run, fakes, fake_gradients), named_facts(real, results, gradients), strict=False):
            if a != b:
                wrong = f"{what} {a} instead of {b}"
                break
        if len(fake_gradients) != len(gradients):
            wrong = f"{len(fake_gradients)} gradients instead of {len(gradients)}"
    if wrong:
        report.fail(f"{case.label}: {wrong}")
    else:
        report.passed += 1


def named_facts(run: Run, results: list[Any], gradients: list[Any]) -> list[tuple[str, str]]:
    names = [f"argument {i}" for i in range(len(run.given))] + [f"result {i}" for i in range(len(results))] + [f"gradient {i}" for i in range(len(gradients))]
    return list(zip(names, facts(run.given + results + gradients)))


def refused_by_torch(theirs: Callable[..., Run]) -> bool:
    """Whether PyTorch's fake tensors have no answer for the sample, either."""
    from torch._subclasses import FakeTensorMode as TheirMode

    run = theirs()
    try:
        with TheirMode() as mode:
            run.convert(mode.from_tensor)
            whole(run)
    except Exception:  # noqa: BLE001
        return True
    return False


def fake_of_model(name: str) -> Report:
    report = Report()
    real = models.build(trt, name)
    try:
        with FakeTensorMode() as mode:
            program = models.build(trt, name)
            assert all(isinstance(p, FakeTensor) for p in program.model.parameters())
    except Exception as error:  # noqa: BLE001
        report.fail(f"building: {type(error).__name__}: {str(error)[:200]}")
        return report
    for step in ("first step", "second step"):
        real.step()
        try:
            with mode:
                program.step()
        except Exception as error:  # noqa: BLE001
            report.fail(f"{step}: {type(error).__name__}: {str(error)[:200]}")
            continue
        wrong = [f"{a} instead of {b}" for a, b in zip(facts(state_of(program)), facts(state_of(real)), strict=True) if a != b]
        if wrong:
            report.fail(f"{step}: {wrong[0]}")
        else:
            report.passed += 1
    return report


def state_of(program: models.Program) -> list[Any]:
    """Parameters, buffers and the optimizer's tensors."""
    found = [*program.model.parameters(), *program.model.buffers()]
    for state in program.optimizer.state.values():
        found += [x for x in state.values() if isinstance(x, trt.Tensor)]
    return found


def modules() -> dict[str, Any]:
    """The entries of PyTorch's database of modules, by class name."""
    from torch.testing._internal.common_modules import module_db

    return {info.module_cls.__name__: info for info in module_db if getattr(trt.nn, info.module_cls.__name__, None) is not None}


def fake_of_module(info: Any, limit: int | None = None) -> Report:
    """A module built and run with fake tensors has the results, gradients and buffers of a real one, by size, strides, type and device."""
    report, library = Report(), Library(trt)
    cls = getattr(trt.nn, info.module_cls.__name__)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        opinfo.seed_sampling()
        found = info.module_inputs_func(info, device="cpu", dtype=torch.float32, requires_grad=True, training=True)
        for report.seen, given in enumerate(itertools.islice(found, limit), 1):
            if given.forward_input is None:
                continue
            made, called = given.constructor_input, given.forward_input
            label = opinfo.describe(torch.testing._internal.opinfo.core.SampleInput(made.args, args=called.args, kwargs=made.kwargs))[:200]
            try:
                expected = step_of_module(library, cls, arguments_of_module(library, made, called), lambda x: x)
            except Exception:  # noqa: BLE001 (what is refused has no facts)
                continue
            arguments = arguments_of_module(library, made, called)
            try:
                with FakeTensorMode() as mode:
                    actual = step_of_module(library, cls, arguments, mode.from_tensor)
            except Exception as error:  # noqa: BLE001
                if isinstance(error, (DataDependentOutputException, DynamicOutputShapeException)) and module_refused_by_torch(info.module_cls, made, called):
                    report.refused += 1
                    continue
                report.fail(f"{label}: {type(error).__name__}: {str(error)[:200]}")
                continue
            wrong = [f"{a} instead of {b}" for a, b in zip(facts(actual), facts(expected), strict=False) if a != b]
            if wrong or len(actual) != len(expected):
                report.fail(f"{label}: {wrong[0] if wrong else f'{len(actual)} tensors instead of {len(expected)}'}")
            else:
                report.passed += 1
    return report


def module_refused_by_torch(cls: Any, made: Any, called: Any) -> bool:
    from torch._subclasses import FakeTensorMode as TheirMode

    library = Library(torch)
    arguments = arguments_of_module(library, made, called)
    try:
        with TheirMode() as mode:
            step_of_module(library, cls, arguments, mode.from_tensor)
    except Exception:  # noqa: BLE001
        return True
    return False


def arguments_of_module(library: Library, made: Any, called: Any) -> tuple[Any, ...]:
    return library.arguments(list(made.args), dict(made.kwargs), list(called.args), dict(called.kwargs))


def step_of_module(library: Library, cls: Any, given: tuple[Any, ...], convert: Callable[[Any], Any]) -> list[Any]:
    """Build a module and run it forward and backward; its tensors, the results and the gradients."""
    made_args, made_kwargs, args, kwargs = mapped(given, convert)
    module = cls(*made_args, **made_kwargs)
    results = library.tensors(module(*args, **kwargs))
    leaves = [*module.parameters(), *(x for x in library.tensors(args, kwargs) if x.requires_grad and x.is_leaf)]
    wanted = [y for y in results if y.requires_grad]
    gradients = library.module.autograd.grad(wanted, leaves, [library.module.ones_like(y) for y in wanted], allow_unused=True) if wanted and leaves else ()
    return [*module.parameters(), *module.buffers(), *results, *(g for g in gradients if g is not None)]


def mapped(value: Any, function: Callable[[Any], Any]) -> Any:
    """A nest of arguments with `function` of each tensor."""
    if isinstance(value, (trt.Tensor, torch.Tensor)):
        return function(value)
    if isinstance(value, (list, tuple)):
        return type(value)(mapped(x, function) for x in value)
    return {name: mapped(x, function) for name, x in value.items()} if isinstance(value, dict) else value


# ---- counts --------------------------------------------------------------------------------------------------------

HEAVY = ("mm", "addmm", "bmm", "convolution", "_scaled_dot_product_flash_attention_for_cpu", "_log_softmax")


def counts_of_model(name: str) -> Report:
    """FlopCounterMode's count by operator, and what a selective-checkpoint policy by operator names saves and computes again, beside PyTorch's."""
    report = Report()
    found = []
    for module in (torch, trt):
        program = models.build(module, name)
        try:
            found.append((flops_of(module, program), policy_of(module, program)))
        except Exception as error:  # noqa: BLE001
            report.fail(f"{module.__name__}: {type(error).__name__}: {str(error)[:200]}")
            return report
    for what, theirs, ours in zip(("flops", "policy"), *found):
        if ours == theirs:
            report.passed += 1
        else:
            report.fail(f"{what}: {dict(sorted((ours - theirs).items()))} more and {dict(sorted((theirs - ours).items()))} less than PyTorch's")
    return report


def flops_of(module: Any, program: models.Program) -> Counter[str]:
    counter = importlib.import_module(f"{module.__name__}.utils.flop_counter").FlopCounterMode(display=False)
    with counter:
        program.step()
    return Counter({str(op): number for op, number in counter.get_flop_counts()["Global"].items()})


def policy_of(module: Any, program: models.Program) -> Counter[str]:
    checkpoint = importlib.import_module(f"{module.__name__}.utils.checkpoint")
    aten, seen = module.ops.aten, Counter()
    heavy = [getattr(aten, name).default for name in HEAVY if hasattr(aten, name)]

    def policy(context: Any, op: Any, *args: Any, **kwargs: Any) -> Any:
        save = op in heavy
        if save or record.counted(str(op)) and not context.is_recompute:
            seen[f"{op} {'again' if context.is_recompute else 'first'} {'saved' if save else 'not saved'}"] += 1
        return checkpoint.CheckpointPolicy.MUST_SAVE if save else checkpoint.CheckpointPolicy.PREFER_RECOMPUTE

    def contexts() -> Any:
        return checkpoint.create_selective_checkpoint_contexts(policy)

    checkpoint.checkpoint(program.loss, use_reentrant=False, context_fn=contexts).backward()
    return seen


# ---- rules of sizes and dtypes -------------------------------------------------------------------------------------


def rules(report: Report, case: Case) -> None:
    """Every call that a mode sees has results of the sizes and dtypes that the operator's row says."""
    try:
        whole(case.ours())
    except Exception:  # noqa: BLE001 (what is refused has no results)
        return
    run = case.ours()
    note_calls(report, case.label, record.compare_rules, lambda: whole(run))


def rules_of_model(name: str) -> Report:
    report, program = Report(), models.build(trt, name)
    for step in ("first step", "second step"):
        note_calls(report, step, record.compare_rules, program.step)
    return report


OPERATOR_KINDS = {"sequence": sequence, "reissue": reissue, "fake": fake, "rules": rules}
MODEL_KINDS = {"sequence": sequence_of_model, "reissue": reissue_of_model, "fake": fake_of_model, "rules": rules_of_model, "counts": counts_of_model}
