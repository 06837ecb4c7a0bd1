"""torchvision's operators over ours, beside the formulas as loops in float64."""

from __future__ import annotations

import io
import math

import pytest

import tensorrt_lite as trt
from tensorrt_lite.compat.libraries import load_replacement

ROIS = [[0, 1, 2, 15, 16.0], [1, 0, 0, 19, 19], [0, -3, -3, 30, 30], [1, 5.3, 5.1, 5.4, 9.7], [1, 12, 3, 7, 9], [0, 25, 25, 40, 40]]


@pytest.fixture(scope="module")
def vision():
    trt.ops.load_library("/a/folder/of/packages/torchvision/_C.so")
    return trt.ops.torchvision


@pytest.fixture
def maps():
    return trt.rand(2, 12, 20, 18, dtype=trt.float64, requires_grad=True)


@pytest.fixture
def rois():
    return trt.tensor(ROIS, dtype=trt.float64)


def rounded(x):
    return int(math.floor(abs(x) + 0.5) * (1 if x >= 0 else -1))


def sample(plane, y, x):
    """A bilinear sample of a list of rows, as RoIAlign takes it."""
    height, width = len(plane), len(plane[0])
    if not (-1 <= y <= height and -1 <= x <= width):
        return 0.0
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    top, left = int(y), int(x)
    bottom, right = min(top + 1, height - 1), min(left + 1, width - 1)
    fy, fx = y - top, x - left
    return (1 - fy) * ((1 - fx) * plane[top][left] + fx * plane[top][right]) + fy * ((1 - fx) * plane[bottom][left] + fx * plane[bottom][right])


def aligned_bin(plane, roi, i, j, scale, size, ratio, aligned):
    offset = 0.5 if aligned else 0.0
    x1, y1, x2, y2 = (v * scale - offset for v in roi[1:])
    width, height = x2 - x1, y2 - y1
    if not aligned:
        width, height = max(width, 1.0), max(height, 1.0)
    step_y, step_x = height / size[0], width / size[1]
    ny, nx = (ratio, ratio) if ratio > 0 else (math.ceil(step_y), math.ceil(step_x))
    if ny <= 0 or nx <= 0:
        return 0.0
    places = [(y1 + step_y * (i + (a + 0.5) / ny), x1 + step_x * (j + (b + 0.5) / nx)) for a in range(ny) for b in range(nx)]
    return sum(sample(plane, y, x) for y, x in places) / (ny * nx)


@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("ratio", [-1, 2])
def test_roi_align(vision, maps, rois, aligned, ratio):
    size, scale = (3, 4), 0.6
    found = vision.roi_align(maps, rois, scale, *size, ratio, aligned)
    planes = maps.detach().tolist()
    for k, roi in enumerate(ROIS):
        for c in (0, 7):
            want = [[aligned_bin(planes[int(roi[0])][c], roi, i, j, scale, size, ratio, aligned) for j in range(size[1])] for i in range(size[0])]
            trt.testing.assert_close(found[k, c], trt.tensor(want, dtype=trt.float64))
    assert trt.autograd.gradcheck(lambda x: vision.roi_align(x, rois, scale, *size, ratio, aligned), (maps[:, :1, :6, :7].detach().requires_grad_(),))


def test_ps_roi_align(vision, maps, rois):
    size, scale = (3, 2), 0.7
    found, channels = vision.ps_roi_align(maps, rois, scale, *size, 2)
    assert found.shape == channels.shape == (len(ROIS), 2, 3, 2) and channels.dtype == trt.int32
    planes = maps.detach().tolist()
    for k, roi in enumerate(ROIS):
        for c in range(2):
            for i in range(3):
                for j in range(2):
                    own = (c * 3 + i) * 2 + j
                    assert channels[k, c, i, j] == own
                    assert found[k, c, i, j].item() == pytest.approx(aligned_bin(planes[int(roi[0])][own], roi, i, j, scale, size, 2, True), abs=1e-12)


@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_roi_pool(vision, maps, rois, scale):
    found, places = vision.roi_pool(maps, rois, scale, 3, 4)
    planes = maps.detach().tolist()
    for k, roi in enumerate(ROIS):
        x1, y1, x2, y2 = (rounded(v * scale) for v in roi[1:])
        step_y, step_x = max(y2 - y1 + 1, 1) / 3, max(x2 - x1 + 1, 1) / 4
        for i in range(3):
            for j in range(4):
                rows = range(min(max(math.floor(i * step_y) + y1, 0), 20), min(max(math.ceil((i + 1) * step_y) + y1, 0), 20))
                columns = range(min(max(math.floor(j * step_x) + x1, 0), 18), min(max(math.ceil((j + 1) * step_x) + x1, 0), 18))
                plane = planes[int(roi[0])][5]
                cells = [(plane[y][x], y * 18 + x) for y in rows for x in columns]
                assert (found[k, 5, i, j].item(), places[k, 5, i, j].item()) == (max(cells) if cells else (0.0, -1))
    few = maps[:, :2, :6, :7].detach().requires_grad_()
    assert trt.autograd.gradcheck(lambda x: vision.roi_pool(x, rois, scale, 2, 2)[0], (few,))
    grad = trt.rand(len(ROIS), 2, 2, 2, dtype=trt.float64)
    pooled, places = vision.roi_pool(few, rois, scale, 2, 2)
    want = trt.autograd.grad(pooled, few, grad)[0]
    assert trt.equal(vision._roi_pool_backward(grad, rois, places, scale, 2, 2, 2, 2, 6, 7), want)


def test_ps_roi_pool(vision, maps, rois):
    found, channels = vision.ps_roi_pool(maps, rois, 0.8, 3, 2)
    planes = maps.detach().tolist()
    for k, roi in enumerate(ROIS):
        x1, y1, x2, y2 = (rounded(v * 0.8) for v in roi[1:])
        step_y, step_x = max(y2 - y1, 1) / 3, max(x2 - x1, 1) / 2
        for i in range(3):
            for j in range(2):
                rows = range(min(max(math.floor(i * step_y) + y1, 0), 19), min(max(math.ceil((i + 1) * step_y) + y1, 0), 19))
                columns = range(min(max(math.floor(j * step_x) + x1, 0), 17), min(max(math.ceil((j + 1) * step_x) + x1, 0), 17))
                plane = planes[int(roi[0])][(3 + i) * 2 + j]
                cells = [plane[y][x] for y in rows for x in columns]
                assert found[k, 1, i, j].item() == pytest.approx(sum(cells) / len(cells) if cells else 0.0, abs=1e-12)


def test_gradient_operators_are_those_of_the_forward(vision, maps, rois):
    grad = trt.rand(len(ROIS), 2, 3, 2, dtype=trt.float64)
    sizes = maps.shape
    means, channels = vision.ps_roi_align(maps, rois, 0.7, 3, 2, -1)
    trt.testing.assert_close(vision._ps_roi_align_backward(grad, rois, channels, 0.7, 3, 2, -1, *sizes), trt.autograd.grad(means, maps, grad)[0])
    means, channels = vision.ps_roi_pool(maps, rois, 0.7, 3, 2)
    trt.testing.assert_close(vision._ps_roi_pool_backward(grad, rois, channels, 0.7, 3, 2, *sizes), trt.autograd.grad(means, maps, grad)[0])
    grad = trt.rand(len(ROIS), 12, 3, 2, dtype=trt.float64)
    trt.testing.assert_close(
        vision._roi_align_backward(grad, rois, 0.7, 3, 2, *sizes, 2, True), trt.autograd.grad(vision.roi_align(maps, rois, 0.7, 3, 2, 2, True), maps, grad)[0]
    )


def overlap(a, b):
    inner = max(min(a[2], b[2]) - max(a[0], b[0]), 0) * max(min(a[3], b[3]) - max(a[1], b[1]), 0)
    return inner / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - inner)


@pytest.mark.parametrize("count", [0, 1, 300, 700])  # more than are worked on at once
@pytest.mark.parametrize("threshold", [0.1, 0.5])
def test_nms(vision, count, threshold):
    boxes = trt.rand(count, 4, dtype=trt.float64) * 50
    boxes[:, 2:] += boxes[:, :2] + 1
    scores = (trt.rand(count) * 20).floor()  # with ties: the first of them is kept
    rows, kept = boxes.tolist(), []
    for index in scores.sort(descending=True, stable=True).indices.tolist():
        if all(overlap(rows[index], rows[other]) <= threshold for other in kept):
            kept.append(index)
    assert vision.nms(boxes, scores.double(), threshold).tolist() == kept


@pytest.mark.parametrize(("groups", "offset_groups", "masked"), [(1, 1, False), (2, 1, True), (1, 2, True), (2, 4, False)])
def test_deform_conv2d(vision, groups, offset_groups, masked):
    kind = {"dtype": trt.float64}
    x, weight = trt.rand(2, 4, 6, 5, **kind), trt.rand(4, 4 // groups, 3, 2, **kind)
    oh, ow = (6 + 2 - 2 * 2 - 1) // 1 + 1, (5 + 4 - 1 - 1) // 2 + 1
    offset = trt.randn(2, 2 * offset_groups * 6, oh, ow, **kind)
    mask = trt.rand(2, offset_groups * 6, oh, ow, **kind) if masked else trt.zeros(2, 1, **kind)
    bias = trt.rand(4, **kind)
    numbers = (1, 2, 1, 2, 2, 1, groups, offset_groups, masked)
    found = vision.deform_conv2d(x, weight, offset, mask, bias, *numbers)
    planes, w, moves, weights = x.tolist(), weight.tolist(), offset.tolist(), mask.tolist()

    def value(n, c, y, x):
        """Bilinear, with zeros around the map."""
        top, left = math.floor(y), math.floor(x)
        plane = planes[n][c]
        return sum(
            (1 - abs(y - i)) * (1 - abs(x - j)) * plane[i][j] for i in (top, top + 1) for j in (left, left + 1) if 0 <= i < 6 and 0 <= j < 5
        )

    for n, o, i, j in ((0, 0, 0, 0), (1, 3, oh - 1, ow - 1), (1, 1, 2, 1), (0, 2, 1, 2)):
        total = bias[o].item()
        for c in range(4 // groups):
            channel = o // (4 // groups) * (4 // groups) + c
            group = channel // (4 // offset_groups)
            for a in range(3):
                for b in range(2):
                    tap = group * 6 + a * 2 + b
                    y, xx = i - 1 + 2 * a + moves[n][2 * tap][i][j], 2 * j - 2 + b + moves[n][2 * tap + 1][i][j]
                    total += w[o][c][a][b] * value(n, channel, y, xx) * (weights[n][tap][i][j] if masked else 1.0)
        assert found[n, o, i, j].item() == pytest.approx(total, abs=1e-11)
    tensors = [t.requires_grad_() for t in (x, weight, offset, mask, bias)]
    grad = trt.rand_like(found)
    want = trt.autograd.grad(vision.deform_conv2d(*tensors, *numbers), tensors, grad, allow_unused=True)
    for g, t, h in zip(vision._deform_conv2d_backward(grad, *tensors, *numbers), tensors, want, strict=True):
        trt.testing.assert_close(g, trt.zeros_like(t) if h is None else h)


def test_deform_conv2d_without_offsets_is_a_convolution(vision):
    x, weight, bias = trt.rand(1, 2, 1, 7), trt.rand(3, 2, 1, 3), trt.rand(3)
    found = vision.deform_conv2d(x, weight, trt.zeros(1, 6, 1, 7), trt.zeros(1, 1), bias, 1, 1, 0, 1, 1, 1, 1, 1, False)
    trt.testing.assert_close(found, trt.conv2d(x, weight, bias, padding=(0, 1)))


def test_wrong_arguments_are_refused(vision, maps, rois):
    for call, error in (
        (lambda: vision.nms(trt.rand(3, 5), trt.rand(3), 0.5), RuntimeError),
        (lambda: vision.nms(trt.rand(3, 4), trt.rand(2), 0.5), RuntimeError),
        (lambda: vision.roi_align(maps, rois[:, 1:], 1.0, 2, 2, 2, True), RuntimeError),
        (lambda: vision.roi_align(maps, rois.float(), 1.0, 2, 2, 2, True), RuntimeError),
        (lambda: vision.roi_pool(maps, rois + 5, 1.0, 2, 2), IndexError),
        (lambda: vision.ps_roi_pool(maps, rois, 1.0, 5, 2), RuntimeError),
        (lambda: vision.deform_conv2d(maps, trt.rand(4, 12, 3, 3).double(), trt.rand(2, 4, 3, 3), trt.rand(1), trt.rand(4), 1, 1, 1, 1, 1, 1, 1, 1, False), RuntimeError),
        (lambda: vision.box_iou_rotated(trt.rand(2, 5), trt.rand(2, 5)), NotImplementedError),
    ):  # fmt: skip
        with pytest.raises(error, match="torchvision::"):
            call()


def test_kernels_for_autocast_are_called_below_it():
    """As torchvision registers them: one that turns autocast off and calls the operator in float32."""
    from tensorrt_lite.compat.modules._C import DispatchKey, DispatchKeySet, _ExcludeDispatchKeyGuard

    library = trt.library.Library("vision_autocast_test", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    seen = []

    def plain(x):
        seen.append((x.dtype, trt.is_autocast_enabled("cpu")))
        return x * 2

    def cast(x):
        with _ExcludeDispatchKeyGuard(DispatchKeySet(DispatchKey.AutocastCPU) | DispatchKeySet(DispatchKey.AutocastCUDA)):
            return trt.ops.vision_autocast_test.twice(x.float()).to(x.dtype)

    library.impl("twice", plain, "CPU")
    for key in ("AutocastCPU", "AutocastCUDA", "AutocastXPU"):
        library.impl("twice", cast, key)
    x = trt.ones(2, dtype=trt.bfloat16)
    assert trt.ops.vision_autocast_test.twice(x).dtype == trt.bfloat16
    with trt.autocast("cpu"):
        assert trt.ops.vision_autocast_test.twice(x).dtype == trt.bfloat16 and trt.is_autocast_enabled("cpu")
    assert seen == [(trt.bfloat16, False), (trt.float32, False)]
    library._destroy()


def test_image_files():
    pillow = pytest.importorskip("PIL.Image")
    assert load_replacement("/packages/torchvision/image.so") and not load_replacement("/packages/other/image.so")
    image = trt.ops.image
    picture = trt.randint(0, 256, (3, 9, 7), dtype=trt.uint8)
    data = image.encode_png(picture, 6)
    assert trt.equal(image.decode_png(data, 0), picture) and trt.equal(image.decode_image(data, 3), picture)
    assert image.decode_image(data, 1).shape == (1, 9, 7) and image.decode_image(data, 4).shape == (4, 9, 7)
    smooth = (trt.arange(63).view(1, 9, 7) * 3).to(trt.uint8)
    decoded = image.decode_jpeg(image.encode_jpeg(smooth, 95), 0)
    assert decoded.shape == (1, 9, 7) and (decoded.int() - smooth.int()).abs().max() <= 8
    target = io.BytesIO()
    pillow.new("RGB", (4, 5), (10, 20, 30)).save(target, "GIF")
    assert image.decode_gif(trt.frombuffer(bytearray(target.getvalue()), dtype=trt.uint8)).shape == (3, 5, 4)
    with pytest.raises(RuntimeError, match="cannot be decoded"):
        image.decode_png(trt.arange(20, dtype=trt.uint8), 0)


def test_bytes_of_files(tmp_path):
    load_replacement("/packages/torchvision/image.so")
    data = trt.arange(10, dtype=trt.uint8)
    trt.ops.image.write_file(str(tmp_path / "file"), data)
    assert trt.equal(trt.ops.image.read_file(str(tmp_path / "file")), data)
    for name in ("none", "empty"):
        (tmp_path / "empty").touch()
        with pytest.raises(RuntimeError):
            trt.ops.image.read_file(str(tmp_path / name))
