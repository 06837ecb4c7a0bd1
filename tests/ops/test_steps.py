"""Steps: what families do per device. Every declared one has a CPU function; where a result depends on the data, meta tensors have none and the error says so."""

from __future__ import annotations

from pathlib import Path

import pytest

import tensorrt_lite as trt
from tensorrt_lite._C.core.dispatch import step_devices

yaml = pytest.importorskip("yaml")
SOURCES = Path(__file__).resolve().parents[2] / "cysrc" / "ops"
# what a row with such a step cannot say without looking at elements
DATA_DEPENDENT = {
    "nonzero": lambda x: x.nonzero(),
    "masked_select": lambda x: x.masked_select(x > 0),
    "index by a mask": lambda x: x[x > 0],
    "unique": lambda x: x.unique(),
    "unique_consecutive": lambda x: trt.unique_consecutive(x, dim=0),
    "bincount": lambda x: trt.bincount(x[0].long()),
    "repeat_interleave": lambda x: x.repeat_interleave(x[0].long(), 1),
    "one_hot": lambda x: trt.nn.functional.one_hot(x.long()),
}
SAME_SHAPE = {
    "sort": lambda x: x.sort(0)[1],
    "topk": lambda x: x.topk(2)[0],
    "median": lambda x: x.median(1)[0],
    "cat": lambda x: trt.cat((x, x), 1),
    "stack": lambda x: trt.stack((x, x), 1),
    "flip": lambda x: x.flip(0),
    "pad": lambda x: trt.nn.functional.pad(x[None], (1, 2), "replicate"),
    "triu": lambda x: x.triu(),
    "dropout": lambda x: trt.nn.functional.dropout(x, 0.3),
    "poisson": lambda x: trt.poisson(x),
    "_standard_gamma": lambda x: trt._standard_gamma(x),
    "_sample_dirichlet": lambda x: trt._sample_dirichlet(x),
    "multinomial": lambda x: trt.multinomial(x, 2),
    "index_select": lambda x: x.index_select(1, trt.tensor([2, 0], device=x.device)),
    "gather": lambda x: x.gather(1, trt.zeros(2, 2, dtype=trt.int64, device=x.device)),
    "scatter_reduce": lambda x: x.scatter_reduce(1, trt.zeros_like(x, dtype=trt.int64), x, "mean"),
    "masked_fill with a number": lambda x: x.masked_fill(x > 0, 2.0),
    "scatter of a number": lambda x: x.scatter(1, trt.zeros_like(x, dtype=trt.int64), 2.0),
    "index_fill": lambda x: x.index_fill(1, trt.zeros(1, dtype=trt.int64, device=x.device), 2.0),
    "masked_scatter": lambda x: x.masked_scatter(x > 0, x),
    "put": lambda x: x.put(trt.zeros(1, dtype=trt.int64, device=x.device), x[:1, 0]),
    "index_put": lambda x: x.index_put((trt.zeros(3, dtype=trt.int64, device=x.device),), x[0]),
    "searchsorted": lambda x: trt.searchsorted(x[0], x),
    "one_hot": lambda x: trt.nn.functional.one_hot(x.long(), 5),
    "clone": lambda x: x.t().clone(),
    "to": lambda x: x.to(trt.float64),
    "addmm": lambda x: trt.addmm(x[:, :2], x, x.t()),
    "dot": lambda x: trt.dot(x[0], x[1]),
    "linear": lambda x: trt.nn.functional.linear(x, x, x[:, 0]),
    "_int_mm": lambda x: trt._int_mm(x.to(trt.int8), x.t().to(trt.int8)),
    "attention": lambda x: trt.nn.functional.scaled_dot_product_attention(x, x, x),
    "conv1d": lambda x: trt.nn.functional.conv1d(x[None], x[None, :, :2]),
    "conv_transpose1d": lambda x: trt.nn.functional.conv_transpose1d(x[None], x[:, None, :2]),
    "interpolate": lambda x: trt.nn.functional.interpolate(x[None], scale_factor=2, mode="linear"),
    "grid_sample": lambda x: trt.nn.functional.grid_sample(x[None, None], trt.zeros(1, 4, 5, 2, device=x.device), align_corners=False),
    "unfold": lambda x: trt.nn.functional.unfold(x[None, None], 2),
    "fold": lambda x: trt.nn.functional.fold(x.t()[None, :1].expand(1, 4, 2), (2, 3), 2),
    "inv": lambda x: trt.linalg.inv(x[:, :2] + trt.eye(2, device=x.device)),
    "solve": lambda x: trt.linalg.solve(x[:, :2] + trt.eye(2, device=x.device), x),
    "svd": lambda x: trt.linalg.svd(x)[2],
    "qr": lambda x: trt.linalg.qr(x, mode="complete")[0],
    "eigh": lambda x: trt.linalg.eigh(x[:, :2])[1],
    "lstsq": lambda x: trt.linalg.lstsq(x, x).solution,
}


@pytest.mark.parametrize("family", ["conv", "creation", "indexing", "joining", "linalg", "matmul", "optim", "random", "resize", "sorting"])
def test_every_step_has_a_function_of_the_cpu(family):
    declared = [row["step"] for row in yaml.safe_load((SOURCES / family / "steps.yaml").read_text())["steps"]]
    assert [step for step in declared if "cpu" not in step_devices().get(step, ())] == []
    assert [step for step in declared if "meta" in step_devices()[step]] == []


@pytest.mark.parametrize("name", DATA_DEPENDENT)
def test_what_depends_on_the_data_says_so_on_meta(name):
    with pytest.raises(NotImplementedError, match="depends on the data, which meta tensors do not have"):
        DATA_DEPENDENT[name](trt.ones(2, 3, device="meta"))


@pytest.mark.parametrize("name", SAME_SHAPE)
def test_others_have_the_geometry_of_the_cpu_on_meta(name):
    real, meta = (SAME_SHAPE[name](trt.ones(2, 3, device=device)) for device in ("cpu", "meta"))
    assert meta.is_meta and (meta.shape, meta.stride(), meta.dtype) == (real.shape, real.stride(), real.dtype)
