"""Times on the device in a profile."""

from __future__ import annotations

import json

import pytest

import tensorrt_lite as trt
from tensorrt_lite.profiler import ProfilerActivity, profile


def test_operators_and_nodes_have_times_on_the_device(tmp_path):
    x = trt.randn(64, 64, device="cuda", requires_grad=True)
    (x @ x).relu().sum().backward()  # compiles
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as p:
        (x @ x).relu().sum().backward()
        trt.ones(3) + 1
    events = {event.name: event for event in p.events()}
    for name in ("aten::mm", "aten::relu", "aten::sum", "MmBackward0", "ReluBackward0"):
        assert events[name].device_time_total > 0, name
    assert events["aten::add"].device_time_total == 0
    for event in p.events():
        assert event.device_time_total >= event.self_device_time_total >= 0
    (average,) = [average for average in p.key_averages() if average.key == "aten::relu"]
    assert average.cuda_time_total == pytest.approx(events["aten::relu"].device_time_total)
    assert "Self CUDA" in p.key_averages().table(sort_by="cuda_time_total") and "Self CUDA time total" in p.key_averages().table()
    p.export_chrome_trace(str(tmp_path / "trace.json"))
    kernels = [entry for entry in json.loads((tmp_path / "trace.json").read_text())["traceEvents"] if entry.get("cat") == "kernel"]
    assert {"aten::mm", "ReluBackward0"} <= {entry["name"] for entry in kernels}
    assert ProfilerActivity.CUDA in trt.profiler.supported_activities()
