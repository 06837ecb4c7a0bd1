"""Errors of the commonest mistakes: PyTorch's type and text, and a hint below it as a note."""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from pathlib import Path

import pytest

import tensorrt_lite as trt
from tensorrt_lite import nn
from tensorrt_lite._C.core.hints import HINTS

torch = pytest.importorskip("torch")


def twice(lib):
    x = lib.ones(2, requires_grad=True)
    loss = (x * x).sum()
    loss.backward()
    loss.backward()


def modified(lib):
    x = lib.ones(2, requires_grad=True)
    y = x.exp()
    y += 1
    y.sum().backward()


def leaf(lib):
    x = lib.ones(2, requires_grad=True)
    x += 1


def loads(saved, model):
    return lambda lib: model(lib).load_state_dict(saved(lib))


def before_init(lib, make):
    class Model(lib.nn.Module):
        def __init__(self):
            self.part = make(lib)

    Model()


# Key of the hint, the mistake. "=": the text is PyTorch's to the letter; "<": PyTorch's stands first, what follows names operator or shapes.
MISTAKES = [
    ("shapes", "=", lambda lib: lib.nn.Linear(4, 3)(lib.ones(2, 5))),
    ("shapes", "=", lambda lib: lib.ones(2, 5) @ lib.ones(4, 3)),
    ("shapes", "=", lambda lib: lib.mm(lib.ones(2, 5), lib.ones(4, 3))),
    ("dtypes", "=", lambda lib: lib.nn.Linear(4, 3)(lib.ones(2, 4, dtype=lib.float64))),
    ("dtypes", "=", lambda lib: lib.ones(2, 4, dtype=lib.int64) @ lib.ones(4, 3)),
    ("class targets", None, lambda lib: lib.nn.functional.cross_entropy(lib.ones(2, 3), lib.tensor([1.0, 0.0]))),
    ("class range", "=", lambda lib: lib.nn.functional.cross_entropy(lib.ones(2, 3), lib.tensor([1, 3]))),
    ("batch sizes", "=", lambda lib: lib.nn.functional.cross_entropy(lib.ones(2, 3), lib.tensor([1, 0, 1]))),
    ("batch sizes", "=", lambda lib: lib.nn.functional.cross_entropy(lib.ones(2, 3), lib.tensor([[1], [0]]))),
    ("loss sizes", "=", lambda lib: lib.nn.functional.binary_cross_entropy_with_logits(lib.ones(3, 1), lib.ones(3))),
    ("probabilities", "=", lambda lib: lib.nn.functional.binary_cross_entropy(lib.tensor([2.0]), lib.ones(1))),
    ("target range", "=", lambda lib: lib.nn.functional.binary_cross_entropy(lib.ones(1), lib.tensor([255.0]))),
    ("float targets", "<", lambda lib: lib.nn.functional.binary_cross_entropy(lib.ones(1), lib.tensor([1]))),
    ("float targets", "<", lambda lib: lib.nn.functional.binary_cross_entropy_with_logits(lib.ones(1), lib.tensor([1]))),
    ("float targets", "<", lambda lib: lib.nn.functional.binary_cross_entropy_with_logits(lib.ones(1), lib.tensor([True]))),
    ("class targets", "=", lambda lib: lib.nn.functional.cross_entropy(lib.ones(2, 3), lib.tensor([[1, 0, 0], [0, 1, 0]]))),
    ("dtypes", "=", lambda lib: lib.nn.GRU(3, 4)(lib.ones(2, 3, dtype=lib.int64))),
    ("backward twice", "=", twice),
    ("modified", None, modified),
    ("leaf", "<", leaf),
    ("no graph", "=", lambda lib: lib.ones(1).backward()),
    ("scalar", "=", lambda lib: lib.ones(2, requires_grad=True).backward()),
    ("broadcast", "<", lambda lib: lib.ones(2, 3) + lib.ones(2, 4)),
    ("broadcast", "<", lambda lib: lib.ones(2, 3) + lib.ones(4, 5)),
    ("broadcast", "<", lambda lib: lib.ones(2, 3).masked_fill(lib.ones(4, 5) > 0, 0)),
    ("broadcast", "<", lambda lib: lib.broadcast_tensors(lib.ones(2, 3), lib.ones(4, 5), lib.ones(5))),
    ("channels", "=", lambda lib: lib.nn.Conv2d(3, 8, 3)(lib.ones(1, 32, 32, 3))),
    ("embedding", "<", lambda lib: lib.nn.Embedding(4, 2)(lib.tensor([4]))),
    ("indices", "=", lambda lib: lib.nn.Embedding(4, 2)(lib.tensor([1.0]))),
    ("stack", "=", lambda lib: lib.utils.data.default_collate([lib.ones(2), lib.ones(3)])),
    ("cat", "=", lambda lib: lib.cat([lib.ones(2, 3), lib.ones(3, 2)])),
    ("one element", "=", lambda lib: lib.ones(2).item()),
    ("ambiguous", "=", lambda lib: bool(lib.ones(2))),
    ("float result", "=", lambda lib: lib.arange(3).mean()),
    ("float gradient", "=", lambda lib: lib.tensor([1, 2], requires_grad=True)),
    ("recurrent size", "=", lambda lib: lib.nn.LSTM(3, 4)(lib.ones(2, 5, 7))),
    ("one value", "=", lambda lib: lib.nn.BatchNorm1d(3)(lib.ones(1, 3))),
    ("no parameters", "=", lambda lib: lib.optim.SGD([], lr=0.1)),
    ("init first", "=", lambda lib: before_init(lib, lambda lib: lib.nn.Linear(1, 1))),
    ("init first", "=", lambda lib: before_init(lib, lambda lib: lib.nn.Parameter(lib.ones(1)))),
    ("init first", "=", lambda lib: before_init(lib, lambda lib: lib.nn.Buffer(lib.ones(1)))),
    ("model for parameters", "=", lambda lib: lib.optim.SGD(lib.nn.Linear(1, 1), lr=0.1)),
    ("model for parameters", None, lambda lib: lib.optim.AdamW(lib.nn.Sequential(lib.nn.Linear(1, 1)))),
    ("view", "=", lambda lib: lib.ones(2, 3).t().view(6)),
    ("prefix", "=", loads(lambda lib: {f"module.{k}": v for k, v in lib.nn.Linear(2, 2).state_dict().items()}, lambda lib: lib.nn.Linear(2, 2))),
    ("nested", "=", loads(lambda lib: {"model": lib.nn.Linear(2, 2).state_dict(), "epoch": 1}, lambda lib: lib.nn.Linear(2, 2))),
    ("keys", "=", loads(lambda lib: {"w": lib.ones(1)}, lambda lib: lib.nn.Linear(2, 2))),
    ("sizes differ", "=", loads(lambda lib: lib.nn.Linear(2, 3).state_dict(), lambda lib: lib.nn.Linear(2, 2))),
]


@pytest.mark.parametrize(("key", "same", "mistake"), MISTAKES, ids=[f"{i} {key}" for i, (key, _, _) in enumerate(MISTAKES)])
def test_the_text_is_pytorchs_and_a_hint_stands_below(key, same, mistake):
    with pytest.raises(Exception) as theirs:
        mistake(torch)
    with pytest.raises(type(theirs.value)) as ours:
        mistake(trt)
    text = str(ours.value)
    if same == "=":
        assert text == str(theirs.value)
    elif same == "<":
        assert text.startswith(str(theirs.value).rstrip("."))
    [note] = ours.value.__notes__
    start = HINTS[key].partition("{0}")[0]
    assert note.startswith(f"Hint: {start}") and "{" + "0}" not in note
    assert start not in text
    printed = "".join(traceback.format_exception(ours.value)).rstrip()
    assert printed.endswith(note)


def test_a_file_with_a_class_says_what_weights_only_is_for(tmp_path):
    trt.save({"model": subprocess.CompletedProcess([], 0)}, tmp_path / "f.pt")
    with pytest.raises(Exception, match="Weights only load failed") as error:
        trt.load(tmp_path / "f.pt")
    assert "weights_only=False" in error.value.__notes__[0]


def test_a_lambda_in_a_loader_that_spawns(tmp_path):
    """Also that the program goes on afterwards."""
    program = tmp_path / "program.py"
    program.write_text(
        "import tensorrt_lite as trt\n"
        "if __name__ == '__main__':\n"
        "    loader = trt.utils.data.DataLoader(trt.arange(4), num_workers=1, collate_fn=lambda b: b, multiprocessing_context='spawn')\n"
        "    try:\n"
        "        next(iter(loader))\n"
        "    except Exception as error:\n"
        "        print(type(error).__name__, error.__notes__[0][:30])\n"
    )
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=120, env={**os.environ, "PYTHONPATH": str(Path(trt.__file__).parent.parent)})
    assert "Hint: Start method spawn pick" in done.stdout, done.stderr


def test_tracebacks_end_in_the_users_line():
    def user():
        return trt.ones(2, 3) + trt.ones(2, 4)  # the user's line

    with pytest.raises(RuntimeError) as error:
        user()
    assert traceback.extract_tb(error.value.__traceback__)[-1].line == "return trt.ones(2, 3) + trt.ones(2, 4)  # the user's line"


def test_every_hint_is_used():
    tested = {key for key, _, _ in MISTAKES} | {"pickle", "global"}
    assert set(HINTS) - tested == {"devices", "no driver"}  # below


def test_two_devices():
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device") as error:
        nn.Linear(2, 2)(trt.ones(1, 2, device="meta"))
    assert error.value.__notes__ == ["Hint: " + HINTS["devices"]]


@pytest.mark.parametrize("call", ["t.ones(2).cuda()", "t.zeros(2, device='cuda')", "t.ones(2).to('cuda:0')", "t.cuda.synchronize()"])
def test_cuda_without_a_driver_is_one_frame_and_a_hint(call):
    code = f"import tensorrt_lite as t, traceback\ntry: {call}\nexcept RuntimeError: traceback.print_exc()"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1]), "TENSORRT_LITE_LIBCUDA": "/no/libcuda.so.1", "TENSORRT_LITE_CUDA": ""}
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env=environment).stderr
    assert "RuntimeError: CUDA error: no NVIDIA driver found" in said and 'Hint: Choose the device that the machine has: device = "cuda" if torch.cuda.is_available()' in said
    assert "importlib" not in said and "_kernels" not in said
    if "synchronize" not in call:
        assert said.count("File ") == 1


def shown_by(tmp_path, text):
    """What `tensorrt-lite run` of a program prints to stderr."""
    program = tmp_path / "program.py"
    program.write_text(text)
    done = subprocess.run([sys.executable, "-m", "tensorrt_lite", "run", str(program)], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "PYTHONPATH": str(Path(trt.__file__).parent.parent)})  # fmt: skip
    return done.stderr


@pytest.mark.parametrize("look,text", [
    ("torch.nn.Linear2", "module 'torch.nn' has no attribute 'Linear2'. Did you mean: 'Linear'?"),
    ("torch.nn.functional.reluu", "module 'torch.nn.functional' has no attribute 'reluu'. Did you mean: 'relu'?"),
    ("torch.utils.data.DataLoader2", "module 'torch.utils.data' has no attribute 'DataLoader2'. Did you mean: 'DataLoader'?"),
    ("torch.sigmiod", "module 'torch' has no attribute 'sigmiod'. Did you mean: 'sigmoid'?"),
])  # fmt: skip
def test_a_wrong_name_shows_the_users_line_alone(tmp_path, look, text):
    lines = shown_by(tmp_path, f"import torch\n{look}\n").splitlines()
    assert lines[-1] == f"AttributeError: {text}"
    assert sum(line.startswith("  File ") for line in lines) == 1


def test_a_file_with_a_class_shows_no_frame_of_the_reader(tmp_path):
    trt.save(trt.nn.Linear(1, 1), tmp_path / "f.pt")
    with pytest.raises(Exception, match="Weights only load failed") as error:
        trt.load(tmp_path / "f.pt")
    assert [frame.name for frame in traceback.extract_tb(error.value.__traceback__)][1:] == ["load"]


def test_the_forward_traceback_begins_in_the_program(tmp_path):
    text = shown_by(tmp_path, "import torch\nwith torch.autograd.detect_anomaly():\n    x = torch.zeros(1, requires_grad=True)\n    (x.sqrt() * 0).sum().backward()\n")
    first = text.partition("Traceback of forward call that caused the error:\n")[2].splitlines()[0]
    assert first == f'  File "{tmp_path / "program.py"}", line 4, in <module>'
