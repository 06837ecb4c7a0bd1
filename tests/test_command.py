"""The command `tensorrt-lite`: version, usage, and what it knows of missing names."""

from __future__ import annotations

import re

import pytest

import tensorrt_lite as trt
from tensorrt_lite._names import gaps as _gaps
from tensorrt_lite._names import missing as _missing
from tensorrt_lite.__main__ import main


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"tensorrt-lite {trt.__version__}\n"


def test_usage_names_every_command(capsys):
    assert main(["--help"]) == 0
    printed = capsys.readouterr().out
    assert [command for command in ("info", "doctor", "bench", "missing", "profile", "run", "alias") if f"\n  {command} " not in printed] == []
    assert main(["no-such-command"]) == 2


def test_alone_it_prints_the_usage_with_examples(capsys):
    assert main([]) == 0
    assert "\nexamples:\n  tensorrt-lite run " in capsys.readouterr().out


def test_a_misspelt_command_is_guessed(capsys):
    assert main(["docter"]) == 2
    assert "did you mean 'doctor'?" in capsys.readouterr().err


def test_the_whole_list_is_plain_text(capsys):
    assert main(["missing", "--all"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("WHAT IS MISSING, DIFFERENT OR SLOWER\n")
    assert not {"`", "|", "]("} & {mark for mark in ("`", "|", "](") if mark in printed}
    words = set(re.findall(r"[A-Za-z_]{4,}", _gaps.text().lower()))
    assert len(words - set(re.findall(r"[A-Za-z_]{4,}", printed.lower()))) < 20  # the addresses of links


def test_alone_it_is_an_overview(capsys):
    assert main(["missing"]) == 0
    printed = capsys.readouterr().out
    assert printed.count("\n") < 80 and "\njit: missing: trace" in printed and "tensorrt-lite missing --all" in printed
    assert main(["missing", "--every"]) == 2


@pytest.mark.parametrize(("name", "said"), [("quantize", "quantize_per_tensor: not implemented\n"), ("lightning", "runs unchanged"), ("pytorch-lightning", "runs unchanged")])
def test_what_resembles_a_missing_name_and_packages_that_run(name, said, capsys):
    assert main(["missing", name]) == 0
    assert said in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("torch.utils.mobile_optimizer", "utils.mobile_optimizer: not implemented\n"),
        ("mobile_optimizer", "utils.mobile_optimizer: not implemented\n"),
        ("export", "export: not implemented\n"),
        ("quint8", "quint8: not implemented\n"),
        ("nn.Linear", "nn.Linear: is implemented\n"),
        ("DataLoader", "num_workers"),
    ],
)
def test_one_name(name, said, capsys):
    assert main(["missing", name]) == 0
    assert said in capsys.readouterr().out


@pytest.mark.parametrize("name", ["torch.fx.symbolic_trace", "torch.ao.quantization.quantize_dynamic"])
def test_a_member_of_a_missing_module_is_missing(name, capsys):
    assert main(["missing", name]) == 0
    assert f"not implemented, and so {name.removeprefix('torch.')} is not" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["no_such_name", "no_such.name"])  # "name" is a word of the list
def test_a_name_of_nothing(name, capsys):
    assert main(["missing", name]) == 1
    printed = capsys.readouterr()
    assert printed.out == "" and f"'{name}' is not a name" in printed.err


def test_what_is_here_says_so_under_its_own_name_too(capsys):
    assert main(["missing", "SparseAdam"]) == 0
    assert capsys.readouterr().out.startswith("optim.SparseAdam: is implemented\n")
    assert main(["missing", "sparse"]) == 0
    assert capsys.readouterr().out.startswith("sparse: is implemented, except for what is said below\n")
    assert main(["missing", "sparse.spsolve"]) == 0
    assert capsys.readouterr().out.startswith("sparse.spsolve: is implemented, except for what is said below\n")


def test_every_missing_name_is_found():
    for module, names in _missing._NAMES.items():
        for name in names.split():
            assert f"{module}.{name}".lstrip(".") in _gaps.missing_paths(name)
