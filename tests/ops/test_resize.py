"""Interpolation, grid sampling and windows against PyTorch: every mode, dtype, layout, both orders of derivatives, errors."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch
from torch_compare import compare, normal, ours, same, second_order

import tensorrt_lite as trt
from tensorrt_lite.nn import functional as TF

F = torch.nn.functional
LINEAR = {3: "linear", 4: "bilinear", 5: "trilinear"}
SHAPES = [(2, 3, 7), (2, 3, 6, 9), (1, 2, 4, 5, 3)]
TARGETS = [{"scale_factor": 2}, {"size": 2}, {"scale_factor": 0.6}, {"scale_factor": 1.7}, {"scale_factor": 1.7, "recompute_scale_factor": True}, {"size": 1}, {"size": 5}, {"size": 13}]


@pytest.mark.parametrize("target", TARGETS, ids=str)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_modes_and_gradients(shape, target, dtype):
    x = normal(*shape, dtype=dtype)
    for mode in ("nearest", "nearest-exact", "area"):
        compare(TF.interpolate, F.interpolate, x, mode=mode, **target)
    for corners in (False, True):
        compare(TF.interpolate, F.interpolate, x, mode=LINEAR[len(shape)], align_corners=corners, **target)
        if len(shape) == 4:
            compare(TF.interpolate, F.interpolate, x, mode="bicubic", align_corners=corners, **target)
            for mode in ("bilinear", "bicubic"):
                compare(TF.interpolate, F.interpolate, x, mode=mode, align_corners=corners, antialias=True, **target)


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic", "area"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_channels_last_and_halves(mode, dtype):
    for last in (False, True):
        for size in ((12, 5), (3, 40)):
            compare(TF.interpolate, F.interpolate, normal(2, 5, 9, 8, dtype=dtype, last=last), size=size, mode=mode)


@pytest.mark.parametrize("mode,antialias", [("nearest", False), ("nearest-exact", False), ("bilinear", False), ("bilinear", True), ("bicubic", False), ("bicubic", True)])
def test_bytes(mode, antialias):
    """Rounded between the dimensions, as PyTorch does, whose weights are of 16 bits."""
    x = torch.randint(0, 256, (2, 3, 40, 31), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    for size in ((17, 12), (80, 62)):
        got = TF.interpolate(ours(x), size=size, mode=mode, antialias=antialias)
        wanted = F.interpolate(x, size=size, mode=mode, antialias=antialias)
        assert got.dtype == trt.uint8
        assert (torch.tensor(got.tolist()) - wanted.long()).abs().max() <= (1 if mode.startswith("bi") else 0)


@pytest.mark.parametrize("shape", SHAPES)
def test_second_derivatives(shape):
    x = normal(*shape)
    for mode in ("nearest", "nearest-exact", LINEAR[len(shape)]) + (("bicubic",) if len(shape) == 4 else ()):
        second_order(TF.interpolate, F.interpolate, x, size=5, mode=mode)


def test_the_backward_pass_is_the_adjoint():
    """<f(x), g> = <x, f'(g)>, where sources are read by many results and by none."""
    for size, mode, antialias in (((3, 2), "bilinear", False), ((50, 4), "bicubic", False), ((5, 33), "bilinear", True), ((4, 4), "bicubic", True), ((2, 8), "bilinear", False), ((9, 11), "bilinear", False)):
        x = trt.randn(2, 3, 17, 21, dtype=trt.float64, requires_grad=True)
        y = TF.interpolate(x, size=size, mode=mode, antialias=antialias)
        g = trt.randn(*y.shape, dtype=trt.float64)
        (back,) = trt.autograd.grad(y, x, g)
        assert abs((y.detach() * g).sum().item() - (x.detach() * back).sum().item()) < 1e-10


@pytest.mark.usefixtures("split_small_work")
def test_results_do_not_depend_on_threads():
    before = trt.get_num_threads()
    x, grid = trt.randn(3, 8, 64, 64), trt.rand(3, 70, 50, 2) * 2.2 - 1.1
    results = []
    for threads in (1, 2):
        trt.set_num_threads(threads)
        p, q = x.clone().requires_grad_(), grid.clone().requires_grad_()
        y = TF.interpolate(p, size=(100, 37), mode="bicubic")
        z = TF.grid_sample(p, q, align_corners=False)
        results.append([y, z, *trt.autograd.grad((y * y).sum() + (z * z).sum(), (p, q)), TF.fold(TF.unfold(x, 3), (64, 64), 3)])
    trt.set_num_threads(before)
    assert all(trt.equal(a, b) for a, b in zip(*results))


@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_grids(mode, padding, corners):
    for dtype in (torch.float32, torch.float64):
        x = normal(2, 3, 5, 7, dtype=dtype)
        grid = (normal(2, 9, 11, 2, dtype=dtype).detach() * 0.9).requires_grad_()
        compare(TF.grid_sample, F.grid_sample, x, grid, mode, padding, corners)
    one = normal(1, 2, 1, 1)
    compare(TF.grid_sample, F.grid_sample, one, normal(1, 4, 4, 2), mode, padding, corners)
    if mode != "bicubic":
        x, grid = normal(2, 3, 4, 5, 6, dtype=torch.float64), normal(2, 3, 4, 5, 3, dtype=torch.float64)
        compare(TF.grid_sample, F.grid_sample, x, grid, mode, padding, corners)


@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("padding", ["zeros", "border"])
@pytest.mark.parametrize("positions", [1, 3, 4, 5, 8, 13, 70])
def test_bilinear_grids_in_vectors(positions, padding, corners):
    """float32 takes eight positions at a time, and the last ones by masks: both gradients, one channel and several, maps of one line."""
    rng = torch.Generator().manual_seed(positions)
    for channels, height, width in ((1, 6, 5), (3, 1, 9), (2, 7, 1)):
        x = torch.randn(2, channels, height, width, generator=rng).requires_grad_()
        grid = (torch.rand(2, 1, positions, 2, generator=rng) * 2.6 - 1.3).requires_grad_()
        compare(TF.grid_sample, F.grid_sample, x, grid, "bilinear", padding, corners)


def test_gradients_of_grids_where_nothing_is_read():
    """An infinite gradient of a position outside reaches neither the input nor the grid; a nearest pixel doesn't move with the grid."""
    x, grid = trt.randn(1, 1, 4, 4, requires_grad=True), trt.full((1, 1, 9, 2), 5.0).requires_grad_()
    grads = trt.autograd.grad(TF.grid_sample(x, grid, align_corners=False), [x, grid], trt.full((1, 1, 1, 9), float("inf")))
    assert not any(g.any() for g in grads)
    inside = trt.zeros(1, 1, 9, 2, requires_grad=True)
    (back,) = trt.autograd.grad(TF.grid_sample(x, inside, mode="nearest", align_corners=False).sum(), [inside])
    assert back.shape == (1, 1, 9, 2) and not back.any()


def test_grids_of_anything():
    """Positions far outside, infinite and NaN read nothing beyond the tensor."""
    grid = torch.tensor([float("nan"), float("inf"), -float("inf"), 1e30, -1e30, 1e9, -5.0, 0.0]).reshape(1, 2, 2, 2)
    x = torch.randn(1, 2, 3, 3)
    for mode in ("bilinear", "nearest", "bicubic"):
        for padding in ("zeros", "border", "reflection"):
            r = TF.grid_sample(ours(x), ours(grid), mode, padding, False)
            assert r.shape == (1, 2, 2, 2)


@pytest.mark.parametrize("args", [((3, 2), 1, 0, 1), (3, 2, (2, 1), (2, 3)), (1, 1, 0, 1), (5, 1, 4, 3)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64, torch.bfloat16])
def test_windows(args, dtype):
    x = torch.randn(2, 3, 9, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(dtype)
    x = x.requires_grad_(dtype.is_floating_point)
    compare(TF.unfold, F.unfold, x, *args)
    compare(TF.unfold, F.unfold, x.detach()[0], *args)
    columns = F.unfold(x, *args).detach().requires_grad_(dtype.is_floating_point)
    compare(TF.fold, F.fold, columns, (9, 8), *args)
    if dtype == torch.float64:
        second_order(TF.unfold, F.unfold, x.detach().requires_grad_(), *args)
        second_order(TF.fold, F.fold, columns, (9, 8), *args)


@pytest.mark.usefixtures("split_small_work")
@pytest.mark.parametrize("dtype", [torch.bool, torch.float16, torch.float32, torch.float64, torch.complex128])
@pytest.mark.parametrize("size,args", [((2, 2), (3, 1, 1)), ((4, 5), ((3, 2), (1, 2), 1, (1, 2))), ((1, 3), (1,))])
def test_windows_of_many_small_planes(size, args, dtype):
    x = torch.randint(0, 9, (11, 7, *size), generator=torch.Generator().manual_seed(0)).to(dtype)
    same(TF.unfold(ours(x), *args), F.unfold(x, *args))


@pytest.mark.parametrize(
    "call,error",
    [
        (lambda x: TF.interpolate(x, size=0), RuntimeError),
        (lambda x: TF.interpolate(x, scale_factor=0.01), RuntimeError),
        (lambda x: TF.interpolate(x, size=4, mode="linear"), NotImplementedError),
        (lambda x: TF.interpolate(x.long(), size=4, mode="bilinear"), NotImplementedError),
        (lambda x: TF.interpolate(x, size=4, scale_factor=2), ValueError),
        (lambda x: TF.interpolate(x), ValueError),
        (lambda x: TF.interpolate(x, size=(1, 2, 3)), ValueError),
        (lambda x: TF.interpolate(x, size=4, mode="nearest", align_corners=True), ValueError),
        (lambda x: TF.grid_sample(x, trt.zeros(2, 4, 4, 2), align_corners=False), RuntimeError),
        (lambda x: TF.grid_sample(x, trt.zeros(1, 4, 4, 3), align_corners=False), RuntimeError),
        (lambda x: TF.grid_sample(x, trt.zeros(1, 4, 4, 2, dtype=trt.float64), align_corners=False), RuntimeError),
        (lambda x: TF.unfold(x, 9), RuntimeError),
        (lambda x: TF.unfold(x, 0), RuntimeError),
        (lambda x: TF.fold(x[0], (4, 4), 3), RuntimeError),
        (lambda x: TF.fold(trt.zeros(1, 9, 5), (4, 4), 3), RuntimeError),
    ],
)
def test_errors(call, error):
    with pytest.raises(error):
        call(trt.randn(1, 2, 5, 5))


def test_meta_and_no_samples():
    m = trt.empty(2, 3, 4, 5, device="meta")
    assert TF.interpolate(m, scale_factor=2).shape == (2, 3, 8, 10)
    assert TF.grid_sample(m, trt.empty(2, 6, 7, 2, device="meta"), align_corners=False).shape == (2, 3, 6, 7)
    assert TF.unfold(m, 2).shape == (2, 12, 12)
    empty = torch.zeros(0, 3, 4, 5)
    same(TF.interpolate(ours(empty), size=(2, 2), mode="bilinear"), F.interpolate(empty, size=(2, 2), mode="bilinear"))
    same(TF.unfold(ours(empty), 2), F.unfold(empty, 2))


@pytest.mark.parametrize("channels", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("last", [False, True])
def test_bytes_are_resampled_in_registers_as_in_float(channels, last):
    """Bytes have a kernel of their own up to four channels: each result is the float path's, rounded after each pass."""
    trt.manual_seed(channels)
    for height, width, out in ((17, 23, (9, 11)), (17, 23, (40, 51)), (64, 65, (64, 30)), (5, 300, (7, 1)), (1, 1, (4, 5)), (100, 8, (3, 64))):
        x = trt.randint(0, 256, (2, channels, height, width), dtype=trt.uint8)
        if last:
            x = x.to(memory_format=trt.channels_last)
        for mode, antialias in (("bilinear", False), ("bilinear", True), ("bicubic", False), ("bicubic", True), ("nearest", False)):
            made = trt.nn.functional.interpolate(x, size=out, mode=mode, antialias=antialias)
            across = trt.nn.functional.interpolate(x.double(), size=(height, out[1]), mode=mode, antialias=antialias)
            between = (across + 0.5).floor().clamp(0, 255)
            expected = (trt.nn.functional.interpolate(between, size=out, mode=mode, antialias=antialias) + 0.5).floor().clamp(0, 255)
            difference = (made.double() - expected).abs()
            # a half, which ratios like 64:30 make often, may round either way between float and double
            assert difference.amax() <= 1 and difference.mean() < 0.15, (height, width, out, mode, antialias)


def test_second_derivatives_of_grids():
    """Beside PyTorch's: all modes and paddings, 2D and 3D, corners aligned or not, places outside of the planes."""
    for n in (2, 3):
        for mode in ("bilinear", "nearest") + ("bicubic",) * (n == 2):
            for padding in ("zeros", "border", "reflection"):
                for corners in (True, False):
                    rng = torch.Generator().manual_seed(n)
                    x = torch.randn(2, 2, *range(3, 3 + n), generator=rng, dtype=torch.float64)
                    grid = (torch.rand(2, *range(2, 2 + n), n, generator=rng, dtype=torch.float64) - 0.5) * 3
                    found = []
                    for lib, convert in ((torch, lambda t: t), (trt, ours)):
                        leaves = [convert(x.clone().requires_grad_()), convert(grid.clone().requires_grad_())]
                        y = lib.nn.functional.grid_sample(*leaves, mode, padding, corners)
                        first = lib.autograd.grad(y.sin().sum(), leaves, create_graph=True)
                        second = lib.autograd.grad(first[0].cos().sum() + first[1].sin().sum(), leaves, allow_unused=True)
                        found.append((first, second))
                    same(found[1], found[0], f"{n} {mode} {padding} {corners}", 1e-9)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("given", [{"size": (3, 4)}, {"size": (9, 10)}, {"size": (1, 7)}, {"size": (40, 3)}, {"scale_factor": 0.4}, {"scale_factor": (1.7, 0.3)},
                                   {"scale_factor": 0.5, "recompute_scale_factor": True}])  # fmt: skip
@pytest.mark.parametrize("shape", [(2, 3, 12, 13), (1, 1, 5, 7), (1, 4, 64, 50)])
def test_lanczos_is_pytorchs_with_its_gradient(shape, given, dtype):
    x = torch.randn(shape, dtype=getattr(torch, dtype))
    results = []
    for library, values in ((torch, x.clone().requires_grad_()), (trt, trt.tensor(x.numpy()).requires_grad_())):
        y = library.nn.functional.interpolate(values, mode="lanczos", antialias=True, **given)
        (y * y).sum().backward()
        results.append((y.detach().numpy(), values.grad.numpy()))
    for found, expected in zip(results[1], results[0], strict=True):
        assert found.shape == expected.shape
        assert abs(found - expected).max() <= (2e-5 if dtype == "float32" else 1e-12) * max(1, abs(expected).max())


def test_lanczos_of_bytes_and_channels_last():
    x = torch.randint(0, 256, (2, 3, 30, 41), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    for theirs in (x, x.contiguous(memory_format=torch.channels_last)):
        mine = trt.tensor(x.numpy())
        mine = mine.contiguous(memory_format=trt.channels_last) if theirs is not x else mine
        for size in ((13, 17), (50, 45)):
            found = trt.nn.functional.interpolate(mine, size, mode="lanczos", antialias=True).numpy().astype(int)
            expected = torch.nn.functional.interpolate(theirs, size, mode="lanczos", antialias=True).numpy().astype(int)
            assert abs(found - expected).max() <= 1
    real = x.float().contiguous(memory_format=torch.channels_last)
    found = trt.nn.functional.interpolate(trt.tensor(x.numpy()).float().contiguous(memory_format=trt.channels_last), (13, 50), mode="lanczos", antialias=True)
    assert abs(found.numpy() - torch.nn.functional.interpolate(real, (13, 50), mode="lanczos", antialias=True).numpy()).max() < 1e-2


def test_lanczos_refuses_what_pytorchs_refuses():
    for library in (torch, trt):
        image = library.ones(1, 1, 4, 4)
        for given, message in (({}, "requires antialias=True"), ({"antialias": True, "align_corners": True}, "does not support align_corners=True")):
            with pytest.raises(ValueError, match=message):
                library.nn.functional.interpolate(image, (2, 2), mode="lanczos", **given)
        with pytest.raises(ValueError, match="requires a 4-D tensor"):
            library.nn.functional.interpolate(library.ones(1, 1, 4), 2, mode="lanczos", antialias=True)
