"""SummaryWriter: its files are read back by a small reader of the wire format here, and by TensorBoard's own where that is installed."""

from __future__ import annotations

import io
import struct
import wave
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorrt_lite as trt
from tensorrt_lite.utils.tensorboard import SummaryWriter, summary
from tensorrt_lite.utils.tensorboard._protobuf import crc32c, varint


def crc_of_bits(buffer: bytes) -> int:
    """CRC-32C a bit at a time."""
    state = 0xFFFFFFFF
    for byte in buffer:
        state ^= byte
        for _ in range(8):
            state = state >> 1 ^ (0x82F63B78 if state & 1 else 0)
    return state ^ 0xFFFFFFFF


def fields(message: bytes) -> dict[int, list[Any]]:
    """The fields of a message by their numbers: ints, or bytes."""
    found: dict[int, list[Any]] = {}
    at = 0

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        key = number()
        if key & 7 == 0:
            value: Any = number()
        else:
            size = {1: 8, 5: 4}.get(key & 7) or number()
            value = message[at : at + size]
            at += size
        found.setdefault(key >> 3, []).append(value)
    return found


def events(folder: Any) -> list[dict[int, list[Any]]]:
    """The events of a folder's file, whose checksums are right."""
    [file] = Path(folder).glob("events.out.tfevents.*")
    content, found = file.read_bytes(), []
    while content:
        length = struct.unpack("<Q", content[:8])[0]
        body = content[12 : 12 + length]
        for part, at in ((content[:8], 8), (body, 12 + length)):
            crc = crc32c(part)
            assert struct.unpack("<I", content[at : at + 4])[0] == ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
        found.append(fields(body))
        content = content[16 + length :]
    assert found[0][3] == [b"brain.Event:2"]
    return found[1:]


def values(folder: Any) -> list[tuple[str, int | None, dict[int, list[Any]]]]:
    """(tag, step, fields of the value) of a folder's summaries."""
    found = []
    for event in events(folder):
        for value in fields(event[5][0])[1] if 5 in event else []:
            content = fields(value)
            found.append((content[1][0].decode(), event.get(2, [None])[0], content))
    return found


def pixels_of(png: bytes) -> np.ndarray:
    """A PNG file of bytes without filters."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    at, body = 8, b""
    while at < len(png):
        length, kind = struct.unpack(">I", png[at : at + 4])[0], png[at + 4 : at + 8]
        chunk = png[at + 8 : at + 8 + length]
        assert struct.unpack(">I", png[at + 8 + length : at + 12 + length])[0] == zlib.crc32(kind + chunk)
        if kind == b"IHDR":
            width, height, _, color = struct.unpack(">IIBB", chunk[:10])
        body += chunk if kind == b"IDAT" else b""
        at += 12 + length
    channels = {0: 1, 2: 3, 4: 2, 6: 4}[color]
    rows = np.frombuffer(zlib.decompress(body), np.uint8).reshape(height, 1 + width * channels)
    assert (rows[:, 0] == 0).all()
    return rows[:, 1:].reshape(height, width, channels)


def test_checksums():
    rng = np.random.default_rng(0)
    assert crc32c(b"123456789") == 0xE3069283
    for size in (0, 1, 31, 33, 1024, 4095, 4096, 5000, 20_000):
        buffer = rng.integers(0, 256, size, dtype=np.uint8).tobytes()
        assert crc32c(buffer) == crc_of_bits(buffer), size
    assert varint(300) == b"\xac\x02" and len(varint(-1)) == 10


def test_scalars(tmp_path):
    with SummaryWriter(tmp_path, max_queue=3) as writer:
        for step in range(10):
            writer.add_scalar("loss/train", trt.tensor(step / 4), step, walltime=100.0 + step)
        writer.add_scalar("numpy", np.float64(1.5))
        writer.add_scalar("tensor", 2.5, 7, new_style=True, double_precision=True)
        writer.add_tensor("weights", trt.arange(6.0).reshape(2, 3), 1)
        writer.add_scalars("both", {"a": 1.0, "b": 2.0}, 4)
        with pytest.raises(AssertionError, match="should contain one element"):
            writer.add_scalar("two", trt.ones(2))
        with pytest.raises(NotImplementedError, match="Got <class 'list'>"):  # packages that log what they find suppress this error
            writer.add_scalar("list", [1.0, 2.0])
    found = values(tmp_path)
    assert [(tag, step, struct.unpack("<f", v[2][0])[0]) for tag, step, v in found[:10]] == [("loss/train", i or 0, i / 4) for i in range(10)]
    assert struct.unpack("<d", events(tmp_path)[3][1][0])[0] == 103.0
    assert found[10][1] is None and struct.unpack("<f", found[10][2][2][0])[0] == 1.5
    assert struct.unpack("<d", fields(found[11][2][8][0])[4][0])[0] == 2.5
    tensor = fields(found[12][2][8][0])
    assert tensor[1] == [1] and np.frombuffer(tensor[4][0], "<f4").tolist() == [0, 1, 2, 3, 4, 5]
    assert [fields(d)[1] for d in fields(tensor[2][0])[2]] == [[2], [3]]
    assert [struct.unpack("<f", values(tmp_path / f"both_{k}")[0][2][2][0])[0] for k in "ab"] == [1.0, 2.0]


def test_files_grow_and_reopen(tmp_path):
    writer = SummaryWriter(tmp_path, max_queue=2, filename_suffix=".mine", purge_step=5)
    [file] = tmp_path.glob("*.mine")
    size = file.stat().st_size
    writer.add_scalar("x", 1.0)
    writer.flush()
    assert file.stat().st_size > size and writer.get_logdir() == str(tmp_path)
    assert fields(events(tmp_path)[0][7][0])[1] == [1] and events(tmp_path)[0][2] == [5]
    writer.close()
    writer.add_scalar("x", 2.0)
    writer.close()
    assert len(list(tmp_path.glob("*.mine"))) == 2


@pytest.mark.parametrize("bins", ["tensorflow", "auto", 7])
def test_histograms(tmp_path, bins):
    data = np.random.default_rng(1).normal(size=1000)
    with SummaryWriter(tmp_path) as writer:
        writer.add_histogram("h", trt.tensor(data), 3, bins=bins)
        writer.add_histogram("few", data, bins=200, max_bins=20)
        writer.add_histogram_raw("raw", 0.0, 1.0, 3, 2.0, 1.5, [0.5, 1.0], [1, 2])
        with pytest.raises(ValueError, match="no element"):
            writer.add_histogram("none", trt.ones(0))
        with pytest.raises(ValueError, match="len"):
            writer.add_histogram_raw("raw", 0.0, 1.0, 3, 2.0, 1.5, [0.5], [1, 2])
    for tag, _, value in values(tmp_path)[:2]:
        histogram = fields(value[5][0])
        low, high, count, total, squares = (struct.unpack("<d", histogram[i][0])[0] for i in range(1, 6))
        np.testing.assert_allclose([low, high, count, total, squares], [data.min(), data.max(), 1000, data.sum(), (data**2).sum()])
        limits, counts = np.frombuffer(histogram[6][0]), np.frombuffer(histogram[7][0])
        assert len(limits) == len(counts) and counts.sum() == 1000 and counts[0] == 0
        for k in (len(limits) // 3, len(limits) // 2):
            assert counts[: k + 1].sum() == (data < limits[k]).sum(), tag


def test_images(tmp_path):
    rng = np.random.default_rng(2)
    color, gray = rng.integers(0, 256, (3, 5, 7), dtype=np.uint8), rng.random((6, 4))
    batch = rng.integers(0, 256, (10, 3, 2, 3), dtype=np.uint8)
    with SummaryWriter(tmp_path) as writer:
        writer.add_image("color", trt.tensor(color))
        writer.add_image("last", color.transpose(1, 2, 0), dataformats="HWC")
        writer.add_image("gray", gray, dataformats="HW")
        writer.add_images("batch", batch)
        writer.add_image_with_boxes("boxes", np.zeros((3, 20, 20), np.uint8), [[2, 3, 10, 12]])
        with pytest.raises(AssertionError, match="size of input tensor and input format are different"):
            writer.add_image("wrong", color, dataformats="HW")
    found = {tag: fields(value[4][0]) for tag, _, value in values(tmp_path)}
    pixels = {tag: pixels_of(image[4][0]) for tag, image in found.items()}
    np.testing.assert_array_equal(pixels["color"], color.transpose(1, 2, 0))
    np.testing.assert_array_equal(pixels["last"], pixels["color"])
    np.testing.assert_array_equal(pixels["gray"][..., 1], (gray.astype("f4") * 255).astype(np.uint8))
    assert pixels["batch"].shape == (4, 24, 3) and (found["batch"][1], found["batch"][2], found["batch"][3]) == ([4], [24], [3])
    np.testing.assert_array_equal(pixels["batch"][:2, 3:6], batch[1].transpose(1, 2, 0))
    np.testing.assert_array_equal(pixels["batch"][2:, 3:6], batch[9].transpose(1, 2, 0))
    assert pixels["boxes"][3, 5].tolist() == [255, 0, 0] and pixels["boxes"][8, 6].tolist() == [0, 0, 0]


def test_figures(tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    with SummaryWriter(tmp_path) as writer:
        figure, axes = pyplot.subplots(figsize=(2, 1), dpi=50)
        axes.plot(trt.arange(3).numpy())
        writer.add_figure("one", figure, 1, close=False)
        writer.add_figure("several", [figure, figure])
        assert not pyplot.fignum_exists(figure.number)
    shapes = [pixels_of(fields(value[4][0])[4][0]).shape for _, _, value in values(tmp_path)]
    assert shapes == [(50, 100, 3), (50, 200, 3)]


def test_sound_and_text(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_audio("tone", trt.sin(trt.arange(800.0) / 9).unsqueeze(0), sample_rate=8000)
        writer.add_text("note", "some **text** äöü", 2)
    (_, _, sound), (tag, step, text) = values(tmp_path)
    audio = fields(sound[6][0])
    assert struct.unpack("<f", audio[1][0])[0] == 8000 and audio[3] == [800] and audio[5] == [b"audio/wav"]
    with wave.open(io.BytesIO(audio[4][0])) as file:
        assert (file.getframerate(), file.getnframes(), file.getsampwidth()) == (8000, 800, 2)
        samples = np.frombuffer(file.readframes(800), "<i2")
    np.testing.assert_allclose(samples / 32767, np.sin(np.arange(800) / 9), atol=1e-4)
    assert (tag, step) == ("note/text_summary", 2) and fields(text[8][0])[8] == ["some **text** äöü".encode()]
    assert fields(fields(text[9][0])[1][0])[1] == [b"text"]


def test_precision_and_recall(tmp_path):
    rng = np.random.default_rng(4)
    labels, predictions = rng.integers(0, 2, 300), rng.random(300)
    with SummaryWriter(tmp_path) as writer:
        writer.add_pr_curve("curve", trt.tensor(labels), trt.tensor(predictions), 1, num_thresholds=11)
    [(_, _, value)] = values(tmp_path)
    tensor = fields(value[8][0])
    tp, fp, tn, fn, precision, recall = np.frombuffer(tensor[4][0], "<f4").reshape(6, 11)
    for k in range(11):
        above = predictions >= k / 10
        assert (tp[k], fp[k], tn[k], fn[k]) == ((above & (labels == 1)).sum(), (above & (labels == 0)).sum(), (~above & (labels == 0)).sum(), (~above & (labels == 1)).sum())
        np.testing.assert_allclose([precision[k], recall[k]], [tp[k] / max(1e-7, tp[k] + fp[k]), tp[k] / (tp[k] + fn[k])], rtol=1e-6)
    assert fields(fields(fields(value[9][0])[1][0])[2][0])[2] == [11]


def test_embeddings(tmp_path):
    points, images = trt.randn(5, 3), trt.rand(5, 3, 4, 4)
    with SummaryWriter(tmp_path) as writer:
        writer.add_embedding(points, list("abcde"), images, 3, "set")
        writer.add_embedding(points, [["x", 1]] * 5, tag="two", metadata_header=["name", "value"])
        with pytest.raises(AssertionError, match="#labels"):
            writer.add_embedding(points, ["a"])
    rows = (tmp_path / "00003" / "set" / "tensors.tsv").read_text().splitlines()
    np.testing.assert_allclose([[float(v) for v in row.split("\t")] for row in rows], points.tolist())
    assert (tmp_path / "00003" / "set" / "metadata.tsv").read_text().split() == list("abcde")
    assert pixels_of((tmp_path / "00003" / "set" / "sprite.png").read_bytes()).shape == (12, 12, 3)
    assert (tmp_path / "projector_config.pbtxt").read_text().count("embeddings {") == 2
    assert (tmp_path / "00000" / "two" / "metadata.tsv").read_text().splitlines()[:2] == ["name\tvalue", "x\t1"]


def test_graphs(tmp_path):
    class Net(trt.nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.head = trt.nn.Sequential(trt.nn.Linear(4, 3), trt.nn.ReLU()), trt.nn.Linear(3, 2)

        def forward(self, x):
            return self.head(self.body(x)) + 1

    net = Net().eval()
    with SummaryWriter(tmp_path) as writer:
        writer.add_graph(net, trt.ones(5, 4))
    [event] = events(tmp_path)
    nodes = {fields(n)[1][0].decode(): fields(n) for n in fields(event[4][0])[1]}
    assert {"Net/body/0/weight", "Net/head/bias", "input/input_0", "output/output_0"} <= set(nodes)
    linear = [name for name in nodes if name.startswith("Net/head/") and b"aten::" in nodes[name][2][0]]
    assert linear and any(b"Net/head/weight" in i for name in linear for i in nodes[name].get(3, []))
    known = set(nodes)
    assert all(i.decode() in known for node in nodes.values() for i in node.get(3, []))
    assert not net.training and not net._forward_hooks


def test_hyperparameters_and_layouts(tmp_path):
    with SummaryWriter(tmp_path / "run") as writer:
        writer.add_hparams({"lr": 0.1, "name": "adam", "deep": True, "width": 3}, {"accuracy": 0.9}, {"name": ["adam", "sgd"]}, run_name="trial")
        writer.add_custom_scalars({"losses": {"all": ["Multiline", ["loss/.*"]], "band": ["Margin", ["a", "b", "c"]]}})
        with pytest.raises(TypeError, match="should be a dictionary"):
            writer.add_hparams(3, {})
        with pytest.raises(ValueError, match="value should be one of"):
            writer.add_hparams({"a": [1]}, {})
    found = values(tmp_path / "run" / "trial")
    assert [tag for tag, _, _ in found] == ["_hparams_/experiment", "_hparams_/session_start_info", "_hparams_/session_end_info", "accuracy"]
    assert values(tmp_path / "run")[0][0] == "custom_scalars__config__"


def test_what_is_not_there_says_so(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        for call in (lambda: writer.add_onnx_graph(""), lambda: writer.add_mesh("m", trt.ones(1, 3, 3)), lambda: summary.make_np("text")):
            with pytest.raises(NotImplementedError):
                call()


def test_tensorboards_own_reader(tmp_path):
    """What TensorBoard makes of a file with everything in it."""
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing import event_accumulator, event_file_loader
    from tensorboard.plugins.hparams import plugin_data_pb2
    from tensorboard.util import tensor_util

    model = trt.nn.Sequential(trt.nn.Linear(2, 3), trt.nn.Tanh())
    with SummaryWriter(tmp_path) as writer:
        for step in range(20):
            writer.add_scalar("loss", 1 / (step + 1), step)
        writer.add_histogram("weights", model[0].weight, 1)
        writer.add_image("image", trt.rand(3, 4, 5), 2)
        writer.add_audio("sound", trt.zeros(10), 3)
        writer.add_text("text", "words", 4)
        writer.add_pr_curve("curve", trt.tensor([0, 1, 1]), trt.tensor([0.1, 0.6, 0.9]), 5)
        writer.add_graph(model, trt.ones(1, 2))
        writer.add_hparams({"lr": 0.1, "deep": False}, {"accuracy": 0.9}, run_name="trial")
    reader = event_accumulator.EventAccumulator(str(tmp_path), size_guidance=dict.fromkeys(("scalars", "tensors", "images", "histograms"), 0))
    reader.Reload()
    assert [(e.step, round(e.value, 6)) for e in reader.Scalars("loss")] == [(i, round(1 / (i + 1), 6)) for i in range(20)]
    assert reader.Histograms("weights")[0].histogram_value.num == 6 and reader.Images("image")[0].width == 5 and reader.Audio("sound")[0].sample_rate == 44100
    assert tensor_util.make_ndarray(reader.Tensors("text/text_summary")[0].tensor_proto).tolist() == [b"words"]
    assert tensor_util.make_ndarray(reader.Tensors("curve")[0].tensor_proto).shape == (6, 127)
    assert {n.op for n in reader.Graph().node} >= {"Parameter", "IO Node", "aten::tanh"} and reader.SummaryMetadata("curve").plugin_data.plugin_name == "pr_curves"
    [file] = (tmp_path / "trial").glob("events*")
    parts = [v for event in event_file_loader.EventFileLoader(str(file)).Load() for v in event.summary.value if v.tag.startswith("_hparams_")]
    start = plugin_data_pb2.HParamsPluginData.FromString(parts[1].metadata.plugin_data.content).session_start_info
    assert start.hparams["lr"].number_value == 0.1 and start.hparams["deep"].bool_value is False
    assert plugin_data_pb2.HParamsPluginData.FromString(parts[0].metadata.plugin_data.content).experiment.metric_infos[0].name.tag == "accuracy"


def test_values_that_cannot_be_written(tmp_path):
    with SummaryWriter(str(tmp_path)) as writer:
        with pytest.raises(TypeError, match=r"Cannot handle this data type: \(1, 1, 5\), \|u1"):
            writer.add_image("i", trt.rand(5, 8, 9), 0)
        with pytest.raises(ValueError, match="could not convert string to float: 'abc'"):
            writer.add_scalar("v", "abc")
        writer.add_scalar("v", "1.5")
