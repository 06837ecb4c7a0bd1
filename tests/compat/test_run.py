"""`tensorrt-lite run`, the hook and the pytest plugin, with programs written for PyTorch in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

TRAINING = """
import sys
import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, TensorDataset

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))

    def forward(self, x):
        return self.layers(x)

if __name__ == "__main__":
    torch.manual_seed(0)
    x = torch.randn(64, 3)
    loader = DataLoader(TensorDataset(x, (x.sum(1) > 0).long()), batch_size=16, shuffle=True)
    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
    scheduler = StepLR(optimizer, 3)
    for epoch in range(4):
        for a, b in loader:
            loss = F.cross_entropy(net(a), b)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        scheduler.step()
    print(sys.argv[1:], f"{loss.item():.5f}")
"""


def run(*arguments: str, cwd: Path, status: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    done = subprocess.run([sys.executable, *arguments], cwd=cwd, capture_output=True, text=True, timeout=120, env={**os.environ, "PYTHONPATH": path, **environment})
    assert done.returncode == status, done.stdout + done.stderr
    return done


LITE = ("-m", "tensorrt_lite", "run")


@pytest.fixture
def program(tmp_path):
    def write(text: str, name: str = "program.py") -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def test_a_program_gives_pytorchs_numbers(program, tmp_path):
    pytest.importorskip("torch")
    program(TRAINING)
    ours = run(*LITE, "program.py", "--lr", "1", cwd=tmp_path).stdout
    assert ours == run("program.py", "--lr", "1", cwd=tmp_path).stdout
    assert ours == run(*LITE, "-m", "program", "--lr", "1", cwd=tmp_path).stdout
    assert ours.startswith("['--lr', '1'] 0.")


def test_a_text_runs_as_a_program(program, tmp_path):
    text = "import sys, torch; print(torch.ones(2).sum().item(), sys.argv, __name__)"
    assert run(*LITE, "-c", text, "--lr", "1", cwd=tmp_path).stdout == "2.0 ['-c', '--lr', '1'] __main__\n"
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    done = subprocess.run([sys.executable, *LITE, "-", "x"], cwd=tmp_path, input=text, capture_output=True, text=True, timeout=120, env={**os.environ, "PYTHONPATH": path})
    assert done.stdout == "2.0 ['-', 'x'] __main__\n", done.stderr


def test_a_program_finds_its_file_from_another_folder(program, tmp_path):
    text = "import os, sys; os.chdir('/'); print(os.path.exists(__file__), os.path.isabs(__file__), sys.argv[0], f.__annotations__)"
    program("def f(x: int): pass\n" + text)
    assert run(*LITE, "program.py", cwd=tmp_path).stdout == "True True program.py {'x': <class 'int'>}\n" == run("program.py", cwd=tmp_path).stdout


def test_the_programs_own_folder_comes_first(program, tmp_path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "helper.py").write_text("import torch\nname = torch.__version__\n")
    (tmp_path / "inner" / "main.py").write_text("import helper, sys; print(helper.name, __name__, sys.argv)")
    assert run(*LITE, "inner/main.py", cwd=tmp_path).stdout == "2.13.0+trtlite __main__ ['inner/main.py']\n"


def test_exit_status_and_traceback_are_the_programs(program, tmp_path):
    program("import sys; sys.exit(7)")
    run(*LITE, "program.py", cwd=tmp_path, status=7)
    program("import torch\ntorch.export.Dim(0, 1)")
    said = run(*LITE, "program.py", cwd=tmp_path, status=1).stderr
    assert said.endswith("NotImplementedError: torch.export.Dim: it is not implemented (docs/gaps.md, or tensorrt-lite missing)\n")
    assert "usage:" in run(*LITE, cwd=tmp_path, status=2).stderr
    assert run(*LITE, "absent.py", cwd=tmp_path, status=2).stderr.startswith("tensorrt-lite: can't open file 'absent.py'")


FAILS = {
    "raised": "def f(n):\n    return 1 / n\n\nf(0)\n",
    "chained": "def f():\n    raise KeyError(3)\n\ntry:\n    f()\nexcept KeyError as error:\n    raise ValueError('no') from error\n",
    "group": "raise ExceptionGroup('two', [ValueError(1), TypeError(2)])\n",
    "syntax": "x = (1,\n",
    "assertion": "assert not 1, 'text'\n",
    "own hook": "import sys\nsys.excepthook = lambda kind, value, trace: print(kind.__name__, trace.tb_frame.f_code.co_name, trace.tb_lineno, file=sys.stderr)\n\n1 / 0\n",
    "interrupted": "raise KeyboardInterrupt\n",
    "in another error's handling": "def g():\n    try:\n        {}[1]\n    except KeyError:\n        int('a')\ng()\n",
}  # fmt: skip


@pytest.mark.parametrize("text", FAILS.values(), ids=FAILS)
def test_tracebacks_begin_with_the_program(program, tmp_path, text):
    path = str(program(text))
    as_python = subprocess.run([sys.executable, path], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert as_python.returncode not in (0, 2)
    assert run(*LITE, path, cwd=tmp_path, status=as_python.returncode).stderr == as_python.stderr
    if text == FAILS["raised"]:
        assert run("-m", "tensorrt_lite", "profile", "--trace", "", "--graph", "", path, cwd=tmp_path, status=1).stderr == as_python.stderr


def test_tracebacks_of_a_module_begin_with_it(program, tmp_path):
    program("1 / 0", "part.py")
    assert run(*LITE, "-m", "part", cwd=tmp_path, status=1).stderr.splitlines()[:2] == ["Traceback (most recent call last):", f'  File "{tmp_path}/part.py", line 1, in <module>']


@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_processes_of_multiprocessing_run_in_the_same_way(program, tmp_path, method):
    program(f"""
import torch
import torch.multiprocessing as mp
kept = torch.ones(2)

def work(queue):
    import torch.optim.rmsprop
    queue.put((torch.__version__, float(torch.ones(3).sum())))

if __name__ == "__main__":
    context = mp.get_context({method!r})
    queue = context.Queue()
    process = context.Process(target=work, args=(queue,))
    process.start()
    print(*queue.get(timeout=60))
    process.join()
""")
    assert run(*LITE, "program.py", cwd=tmp_path).stdout == "2.13.0+trtlite 3.0\n"


CHILD = """
import subprocess, sys
code = "import importlib.util as u, importlib.metadata as m; import sys; print('tensorrt_lite' in sys.modules); import torch; print(torch.__version__, m.version('torch'))"
print(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout, end="")
"""


def test_programs_that_it_starts_have_it_when_asked(program, tmp_path):
    program(CHILD)
    assert run(*LITE, "--children", "program.py", cwd=tmp_path).stdout == "False\n2.13.0+trtlite 2.13.0+trtlite\n"
    assert "trtlite" not in run(*LITE, "program.py", cwd=tmp_path).stdout


def test_report(program, tmp_path):
    program("""
import torch
from torch.export import Dim, export
import torch.utils.bundled_inputs
from torch import empty_quantized
torch.nn.functional.relu(torch.ones(2))
assert not hasattr(torch, "empty_quantized") and callable(torch.quantize_per_tensor)
try:
    Dim(0, 1)
except NotImplementedError:
    pass
""")
    run(*LITE, "--report=said.txt", "program.py", cwd=tmp_path)
    said = (tmp_path / "said.txt").read_text()
    parts = dict(part.split(":", 1) for part in said.replace("\n  ", " ").splitlines())
    assert parts["names missing, used"].split() == ["1", "torch.export.Dim"]
    assert {"torch.export", "torch.utils.bundled_inputs"} <= set(parts["modules missing, imported"].split())
    assert said.startswith("names missing, used: 1\n")
    assert parts["modules used"].split() == ["3", "torch", "torch.nn", "torch.nn.functional"]
    assert set(parts["names used"].split()[1:]) == {"torch.nn.functional.relu", "torch.ones", "torch.empty_quantized", "torch.quantize_per_tensor"}
    assert parts["names missing, never used"].split() == ["3", "torch.empty_quantized", "torch.export.export", "torch.quantize_per_tensor"]


SUITE = """
import torch

def test_sum():
    assert torch.ones(3).sum() == 3 and "trtlite" in torch.__version__
"""


@pytest.mark.parametrize("arguments", [(*LITE, "--", "pytest"), ("-m", "pytest", "-p", "tensorrt_lite.compat.pytest_plugin", "--torch-report")])
def test_suites(program, tmp_path, arguments):
    program(SUITE, "test_program.py")
    said = run(*arguments, "-q", "-p", "no:cacheprovider", "test_program.py", cwd=tmp_path).stdout
    assert "1 passed" in said
    assert ("names missing, used: 0" in said) is ("--torch-report" in arguments)


def test_the_hook_acts_where_the_environment_asks(tmp_path):
    """The .pth hook, as `tensorrt-lite alias --install` writes it, in a site folder of this test's own."""
    code = "from tensorrt_lite.compat import run; import sys, sysconfig; sysconfig.get_path = lambda name: '.'; sys.prefix = sys.base_prefix; run.alias(['--install'])"
    run("-c", code, cwd=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["_tensorrt_lite_alias.pth", "_tensorrt_lite_alias.py", "_tensorrt_lite_constraint.txt", "torch-2.13.0+trtlite.dist-info"]
    # `site` reads .pth files of the folders that it is given
    ask = f"import site, sys; site.addsitedir({str(tmp_path)!r}); print('tensorrt_lite' in sys.modules); import importlib.metadata as m; print(m.version('torch')); import torch; print(torch.__version__)"
    assert run("-c", ask, cwd=tmp_path.parent, TENSORRT_LITE_ALIAS="1").stdout.split() == ["False", "2.13.0+trtlite", "2.13.0+trtlite"]
    ask = f"import site, sys; site.addsitedir({str(tmp_path)!r}); print([f for f in sys.meta_path if getattr(f, '__name__', '') == '_WhenAsked'])"
    assert run("-c", ask, cwd=tmp_path.parent).stdout == "[]\n"
    run("-c", code.replace("--install", "--remove"), cwd=tmp_path)
    assert [path.name for path in tmp_path.iterdir() if path.name != "__pycache__"] == []


def test_the_hook_acts_always_where_that_was_asked_for(tmp_path):
    code = "from tensorrt_lite.compat import run; import sys, sysconfig; sysconfig.get_path = lambda name: '.'; sys.prefix = sys.base_prefix; run.alias(['--install', '--always'])"
    run("-c", code, cwd=tmp_path)
    ask = f"import site; site.addsitedir({str(tmp_path)!r}); import torch; print(torch.__version__)"
    assert run("-c", ask, cwd=tmp_path.parent).stdout == "2.13.0+trtlite\n"
    assert "trtlite" not in run("-c", ask.replace("import torch; print(torch.__version__)", "import sys; print(sys.meta_path)"), cwd=tmp_path.parent, TENSORRT_LITE_ALIAS="0").stdout


def test_pip_takes_the_alias_for_an_installed_pytorch(tmp_path):
    """A package that depends on torch installs without it; PyTorch itself is never overwritten."""
    code = "from tensorrt_lite.compat import run; import sys, sysconfig; sysconfig.get_path = lambda name: {folder!r}; sys.prefix = '.'; run.alias([{action!r}])"
    folder = tmp_path / "packages"
    folder.mkdir()
    run("-c", code.format(folder=str(folder), action="--install"), cwd=tmp_path)
    ask = "import importlib.metadata as m; d = next(iter(m.distributions(name='torch', path=['packages']))); print(d.version, d.metadata['Name'], len(d.files), all(f.locate().exists() for f in d.files))"
    assert run("-c", ask, cwd=tmp_path).stdout == "2.13.0+trtlite torch 4 True\n"
    assert str(folder / "_tensorrt_lite_constraint.txt") in (tmp_path / "pip.conf").read_text()
    wants = "from packaging.requirements import Requirement as R; print([R(r).specifier.contains('2.13.0+trtlite') for r in ('torch>=2.1,<4', 'torch==2.13.0', 'torch>=2.14')])"
    assert run("-c", wants, cwd=tmp_path).stdout == "[True, True, False]\n"
    run("-c", code.format(folder=str(folder), action="--remove"), cwd=tmp_path)
    assert [path.name for path in folder.iterdir() if path.name != "__pycache__"] == [] and not (tmp_path / "pip.conf").exists()
    (folder / "torch-2.13.0.dist-info").mkdir()
    said = run("-c", code.format(folder=str(folder), action="--install"), cwd=tmp_path).stdout
    assert "PyTorch is installed (torch-2.13.0.dist-info)" in said and not (folder / "torch-2.13.0+trtlite.dist-info").exists()


@pytest.mark.parametrize("words", [("--", "python"), ("--", "python3", "-u", "-W", "error", "-X", "dev"), ("python",)], ids=" ".join)
def test_the_command_python_runs_its_program(program, tmp_path, words):
    program("import sys, torch; print(torch.__version__, sys.argv, [f[0] for f in sys.warnoptions or sys.modules['warnings'].filters][:1])")
    said = run(*LITE, *words, "program.py", "--lr", "1", cwd=tmp_path).stdout
    assert said.startswith("2.13.0+trtlite ['program.py', '--lr', '1']") and ("'error'" in said) is ("error" in words)
    assert run(*LITE, *words, "-c", "import torch, sys; print(torch.__version__, sys.argv)", "x", cwd=tmp_path).stdout == "2.13.0+trtlite ['-c', 'x']\n"
    assert "usage:" in run(*LITE, *words, cwd=tmp_path, status=2).stderr


def test_options_of_python_that_come_too_late_are_refused(program, tmp_path):
    program("print(1)")
    assert "python's option -O has no effect" in run(*LITE, "--", "python", "-O", "program.py", cwd=tmp_path, status=2).stderr
    assert "no command 'no_such_command' is installed" in run(*LITE, "--", "no_such_command", cwd=tmp_path, status=1).stderr


def test_another_python_that_would_import_pytorch_is_mentioned_once(program, tmp_path):
    pytest.importorskip("torch")
    program("import subprocess, sys\nfor i in range(2):\n    subprocess.run([sys.executable, '-c', '1'])\n")
    assert run(*LITE, "program.py", cwd=tmp_path).stderr.count("starts another Python") == 1
    assert run(*LITE, "--children", "program.py", cwd=tmp_path).stderr == ""


def test_importing_the_package_imports_nothing_of_this(tmp_path):
    code = "import sys, tensorrt_lite; print([name for name in sys.modules if 'compat' in name and 'tensorrt' in name])"
    assert run("-c", code, cwd=tmp_path).stdout == "[]\n"
