"""What programs ask for and this package has in a lesser form only: it does what PyTorch does where the feature is switched off or absent."""

from __future__ import annotations

import pytest

import tensorrt_lite as trt

torch = pytest.importorskip("torch")

QUESTIONS = [
    "is_autocast_enabled", "jit.is_scripting", "jit.is_tracing", "compiler.is_compiling", "compiler.is_dynamo_compiling", "compiler.is_exporting", "onnx.is_in_onnx_export",
    "distributed.is_initialized", "distributed.is_torchelastic_launched", "accelerator.is_available", "accelerator.device_count",
]  # fmt: skip


def named(library, path: str):
    for part in path.split("."):
        library = getattr(library, part)
    return library


@pytest.mark.parametrize("question", QUESTIONS)
def test_questions_have_the_answer_of_an_eager_program(question):
    if question.startswith("accelerator") and (trt.cuda.is_available() or torch.accelerator.is_available()):
        pytest.skip("the libraries may see different devices")
    __import__("torch.onnx")
    assert named(trt, question)() == named(torch, question)()


def test_no_process_groups():
    assert trt.distributed.is_available() is False
    assert trt.distributed.is_nccl_available() is False
    with pytest.raises(AttributeError, match="'init_process_group': it is not implemented"):
        trt.distributed.init_process_group("gloo")


def test_the_accelerator_is_cuda_where_there_is_a_device():
    available = trt.cuda.is_available()
    assert trt.accelerator.is_available() is available
    assert trt.accelerator.current_accelerator(check_available=True) == (trt.device("cuda") if available else None)
    assert trt.accelerator.current_accelerator().type == "cuda"


def test_programs_may_ask_for_devices_that_there_are_not():
    for kind in ("mps", "mtia", "xpu"):
        assert getattr(trt, kind).is_available() is False and getattr(trt, kind).device_count() == 0
    assert trt._dynamo.reset() is None


def test_scripted_functions_stay_python():
    def f(x):
        return x * 2

    with pytest.warns(UserWarning, match="there is no TorchScript") as warned:
        assert trt.jit.script(f) is f
    assert [w.filename for w in warned] == [__file__]
    assert [mark(f) for mark in (trt.jit.ignore, trt.jit.unused, trt.jit.export, trt.jit.script_if_tracing, trt.compiler.disable)] == [f] * 5
    assert trt.jit.ignore(drop=True)(f) is trt.jit.ignore()(f) is trt.compiler.disable(reason="slow")(f) is f
    assert trt.jit.annotate(list, [1]) == [1]
