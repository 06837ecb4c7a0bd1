"""Files of save load in PyTorch, and PyTorch's files load here: values, types, geometry, sharing, devices."""

from __future__ import annotations

import io
import os
import pickle
import subprocess
import sys
import zipfile
from collections import Counter, OrderedDict

import pytest

import tensorrt_lite as trt
from tensorrt_lite import optim, serialization

torch = pytest.importorskip("torch")

DTYPES = [
    *("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"),
    *("complex64", "complex128"),
    *("uint16", "uint32", "uint64", "complex32", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"),
]


def saved_here(obj, **options):
    buffer = io.BytesIO()
    serialization.save(obj, buffer, **options)
    return io.BytesIO(buffer.getvalue())


def saved_there(obj, **options):
    buffer = io.BytesIO()
    torch.save(obj, buffer, **options)
    return io.BytesIO(buffer.getvalue())


def here_to_there(obj):
    return torch.load(saved_here(obj), weights_only=True)


def there_to_here(obj):
    return serialization.load(saved_there(obj))


def legacy_to_here(obj):
    return serialization.load(saved_there(obj, _use_new_zipfile_serialization=False))


def here_to_here(obj):
    return serialization.load(saved_here(obj))


# Each: the library that writes, and the way to the other side.
ROUTES = [
    pytest.param(trt, here_to_there, id="here-there"),
    pytest.param(torch, there_to_here, id="there-here"),
    pytest.param(torch, legacy_to_here, id="legacy-here"),
    pytest.param(trt, here_to_here, id="here-here"),
]


def described(value):
    """Everything that has to survive, in plain Python."""
    if isinstance(value, (trt.Tensor, torch.Tensor)):
        kind = type(value).__name__
        dtype = str(value.dtype).split(".")[1]
        geometry = tuple(value.shape), tuple(value.stride()), value.storage_offset()
        return kind, dtype, *geometry, value.requires_grad, str(value.device), value.tolist()
    if isinstance(value, (trt.dtype, torch.dtype)):
        return "dtype", str(value).split(".")[1]
    if isinstance(value, (trt.device, torch.device)):
        return "device", str(value)
    if isinstance(value, (trt.Size, torch.Size)):
        return "Size", tuple(value)
    if isinstance(value, dict):
        return type(value).__name__, [(described(k), described(v)) for k, v in value.items()]
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [described(v) for v in value]
    return type(value).__name__, value


def typed(lib, dtype):
    return lib.tensor([[0, 1, 2], [3, 0, 5]]).to(getattr(lib, dtype))


@pytest.mark.parametrize(("lib", "route"), ROUTES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(lib, route, dtype):
    value = typed(lib, dtype)
    if dtype.startswith("complex"):
        value = value * (1 + 2j)
    assert described(route({"x": value})) == described({"x": value})


GEOMETRIES = {
    "scalar": lambda lib: lib.tensor(1.5),
    "empty": lambda lib: lib.zeros(0),
    "empty 3-d": lambda lib: lib.zeros(2, 0, 3),
    "transposed": lambda lib: lib.arange(6.0).view(2, 3).t(),
    "strided": lambda lib: lib.arange(10.0)[1::3],
    "offset": lambda lib: lib.arange(10.0)[4:],
    "expanded": lambda lib: lib.arange(3.0).expand(4, 3),
    "channels last": lambda lib: lib.arange(48.0).view(2, 3, 2, 4).contiguous(memory_format=lib.channels_last),
    "requires grad": lambda lib: lib.ones(2, requires_grad=True),
}


@pytest.mark.parametrize(("lib", "route"), ROUTES)
@pytest.mark.parametrize("name", GEOMETRIES)
def test_geometry(lib, route, name):
    value = GEOMETRIES[name](lib)
    assert described(route(value)) == described(value)


@pytest.mark.parametrize(("lib", "route"), ROUTES)
def test_views_keep_sharing_their_storage(lib, route):
    base = lib.arange(12.0)
    loaded = route({"base": base, "rows": base.view(3, 4), "tail": base[6:], "other": lib.arange(12.0)})
    loaded["base"][7] = 100.0
    assert loaded["rows"][1, 3] == 100.0
    assert loaded["tail"][1] == 100.0
    assert loaded["other"][7] == 7.0
    assert loaded["base"].data_ptr() == loaded["rows"].data_ptr()


def test_dtypes_this_build_lacks_are_named():
    missing = next((name for name in ("uint16", "float8_e8m0fnu") if not hasattr(trt, name)), None)
    if missing is None:
        pytest.skip("this build has every dtype")
    with pytest.raises(RuntimeError, match=f"dtype {missing}, which this build does not support"):
        there_to_here(torch.zeros(2, dtype=getattr(torch, missing)))


def test_one_tensor_twice_is_one_tensor():
    shared = trt.ones(3)
    loaded = here_to_here([shared, {"again": shared}])
    assert loaded[0] is loaded[1]["again"]


def test_shared_storage_is_written_once():
    base = trt.arange(100_000.0)
    assert len(saved_here([base[i:] for i in range(20)]).getvalue()) < 500_000


def test_views_of_another_dtype_keep_sharing():
    base = trt.arange(4.0)
    for route in (here_to_there, here_to_here):
        floats, ints = route([base, base.view(trt.int32)])
        floats[0] = 2.0
        assert ints.tolist() == [0x40000000, 0x3F800000, 0x40000000, 0x40400000]


PLAIN = [
    None,
    True,
    0,
    -1,
    255,
    65536,
    1 << 31,
    1 << 70,
    -(1 << 70),
    1.5,
    float("inf"),
    2 + 3j,
    "text",
    "ünï\U0001f600\n",
    b"",
    b"bytes\x00\xff",
    bytearray(b"ab"),
    {1, 2},
    set(),
    [],
    [1, [2, [3]]],
    (),
    (1,),
    (1, 2),
    (1, 2, 3),
    (1, 2, 3, 4),
    {},
    {"a": {"b": [1, (2, None)]}, 3: 4, (1, 2): 5},
    OrderedDict([("z", 1), ("a", OrderedDict())]),
    Counter("aab"),
    list(range(3000)),
    {str(i): i for i in range(3000)},
]


@pytest.mark.parametrize("route", [here_to_there, there_to_here, legacy_to_here, here_to_here])
@pytest.mark.parametrize("value", PLAIN, ids=lambda v: repr(v)[:30])
def test_plain_data(route, value):
    assert described(route(value)) == described(value)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_protocols(protocol):
    value = {"x": [1, 2.5, "s", b"b", (1, 2)], "set": {1, 2}, "frozen": frozenset([3]), "array": bytearray(b"x")}
    assert described(serialization.load(saved_there(value, pickle_protocol=protocol))) == described(value)
    assert described(serialization.load(saved_here(value, pickle_protocol=protocol))) == described(value)
    assert described(torch.load(saved_here(value, pickle_protocol=protocol), weights_only=False)) == described(value)


@pytest.mark.parametrize(("lib", "route"), ROUTES)
def test_objects_of_the_library(lib, route):
    value = {
        "size": lib.ones(2, 3).shape,
        "dtype": lib.bfloat16,
        "device": lib.device("cpu"),
        "cuda": lib.device("cuda", 1),
        "parameter": lib.nn.Parameter(lib.ones(2)),
        "frozen": lib.nn.Parameter(lib.ones(2), requires_grad=False),
    }
    assert described(route(value)) == described(value)


@pytest.mark.parametrize(("lib", "route"), ROUTES)
def test_attributes_of_tensors(lib, route):
    tensor, parameter = lib.ones(2), lib.nn.Parameter(lib.ones(2))
    tensor.label, parameter.label = "a tensor", {"x": 1}
    loaded = route([tensor, parameter])
    assert loaded[0].label == "a tensor"
    assert loaded[1].label == {"x": 1}


@pytest.mark.parametrize(("lib", "route"), ROUTES)
def test_state_dicts(lib, route):
    model = lib.nn.Sequential(lib.nn.Linear(3, 4), lib.nn.BatchNorm1d(4), lib.nn.Linear(4, 2))
    optimizer = (optim if lib is trt else torch.optim).AdamW(model.parameters(), amsgrad=True)
    model(lib.ones(5, 3)).sum().backward()
    optimizer.step()
    value = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}
    loaded = route(value)
    assert described(loaded) == described(value)
    assert loaded["model"]._metadata == value["model"]._metadata


def test_optimizer_state_crosses_over():
    parameters = [trt.ones(3, requires_grad=True)]
    optimizer = optim.Adam(parameters)
    parameters[0].grad = trt.ones(3)
    optimizer.step()
    other = torch.optim.Adam([torch.ones(3, requires_grad=True)])
    other.load_state_dict(here_to_there(optimizer.state_dict()))
    assert other.state_dict()["state"][0]["step"].item() == 1
    optimizer.load_state_dict(there_to_here(other.state_dict()))
    assert optimizer.state[parameters[0]]["exp_avg"].tolist() == pytest.approx([0.1] * 3)


def test_conjugate_and_negative_views():
    value = torch.tensor([1 + 2j, 3 - 1j])
    assert there_to_here(value.conj()).resolve_conj().tolist() == value.conj().tolist()
    assert there_to_here(value.conj().imag).tolist() == value.conj().imag.tolist()
    mine = trt.tensor([1 + 2j, 3 - 1j])
    assert here_to_there(mine.conj()).resolve_conj().tolist() == value.conj().tolist()


def test_meta_tensors_keep_their_geometry():
    for route in (here_to_there, here_to_here):
        loaded = route(trt.empty(2, 3, device="meta", dtype=trt.float16).t())
        assert (loaded.device.type, tuple(loaded.shape), tuple(loaded.stride())) == ("meta", (3, 2), (1, 3))


def test_storages_by_themselves():
    loaded = there_to_here({"s": torch.arange(4, dtype=torch.uint8).untyped_storage()})
    assert loaded["s"].tolist() == [0, 1, 2, 3]
    loaded = here_to_there(trt.arange(4, dtype=trt.uint8).untyped_storage())
    assert loaded.tolist() == [0, 1, 2, 3]


def test_paths_and_open_files(tmp_path):
    value = {"x": trt.arange(5)}
    for path in (str(tmp_path / "model.pt"), tmp_path / "other.ckpt"):
        serialization.save(value, path)
        assert described(serialization.load(path)) == described(value)
        assert torch.load(path)["x"].tolist() == [0, 1, 2, 3, 4]
        with open(path, "rb") as file:
            assert described(serialization.load(file)) == described(value)
    with open(tmp_path / "model.pt", "rb") as file:
        names = zipfile.ZipFile(file).namelist()
    assert {"model/data.pkl", "model/version", "model/byteorder", "model/data/0"} <= set(names)


def test_writing_needs_no_seek_and_reading_starts_at_the_position():
    class Pipe:
        def __init__(self):
            self.parts = []

        def write(self, data):
            self.parts.append(bytes(data))
            return len(data)

    pipe = Pipe()
    serialization.save([trt.arange(3)], pipe)
    buffer = io.BytesIO(b"header" + b"".join(pipe.parts))
    buffer.seek(6)
    assert serialization.load(buffer)[0].tolist() == [0, 1, 2]


def test_records_are_aligned_and_stored_whole():
    buffer = saved_here([trt.arange(n + 1, dtype=trt.uint8) for n in range(40)])
    raw = buffer.getvalue()
    with zipfile.ZipFile(buffer) as archive:
        assert archive.testzip() is None
        assert archive.read("archive/byteorder").decode() == sys.byteorder
        assert archive.read("archive/version") == b"3\n"
        for info in archive.infolist():
            assert info.compress_type == zipfile.ZIP_STORED
            name_length, extra_length = (
                int.from_bytes(raw[info.header_offset + at : info.header_offset + at + 2], "little") for at in (26, 28)
            )
            assert (info.header_offset + 30 + name_length + extra_length) % 64 == 0


def test_files_beyond_four_gigabytes_have_64_bit_fields(monkeypatch):
    """The limit is lowered instead of writing such a file."""
    from tensorrt_lite._checkpoint import archive

    monkeypatch.setattr(archive, "_ZIP64_FROM", 32)
    buffer = saved_here({"x": trt.arange(100), "y": trt.zeros(1)})
    raw = buffer.getvalue()
    assert raw.count(b"PK\x06\x06") == raw.count(b"PK\x06\x07") == 1
    with zipfile.ZipFile(buffer) as opened:
        assert opened.testzip() is None
    for load in (serialization.load, torch.load):
        assert load(io.BytesIO(raw))["x"].tolist() == list(range(100))


def test_files_are_reproducible():
    assert saved_here({"x": trt.arange(3)}).getvalue() == saved_here({"x": trt.arange(3)}).getvalue()


def test_foreign_byte_order_is_swapped():
    value = {"f": trt.arange(4.0), "c": trt.tensor([1 + 2j]), "b": trt.tensor([True, False]), "h": trt.arange(3).half()}
    source = zipfile.ZipFile(saved_here(value))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for info, width in zip(source.infolist(), record_widths(source, [4, 4, 1, 2]), strict=True):
            data = source.read(info)
            if info.filename.endswith("byteorder"):
                data = b"big" if sys.byteorder == "little" else b"little"
            elif width:
                data = b"".join(data[i : i + width][::-1] for i in range(0, len(data), width))
            archive.writestr(info.filename, data)
    buffer.seek(0)
    assert described(serialization.load(buffer)) == described(value)


def record_widths(archive, widths):
    """Width of a number in each record; None for records that are not storages."""
    for name in archive.namelist():
        folder, _, key = name.rpartition("/")
        yield widths[int(key)] if folder.endswith("/data") else None


@pytest.mark.parametrize(
    "location",
    ["meta", trt.device("meta"), {"cpu": "meta"}, lambda storage, where: trt.empty(3, device="meta").untyped_storage()],
    ids=["name", "device", "dict", "function"],
)
def test_map_location_moves(location):
    loaded = serialization.load(saved_there({"x": torch.arange(3.0)}), map_location=location)
    assert loaded["x"].device.type == "meta"
    assert tuple(loaded["x"].shape) == (3,)


@pytest.mark.parametrize("location", [None, "cpu", trt.device("cpu"), {"cuda:0": "cpu"}, lambda s, where: None])
def test_map_location_that_keeps_the_cpu(location):
    for file in (saved_there([torch.arange(3)]), saved_there([torch.arange(3)], _use_new_zipfile_serialization=False)):
        assert serialization.load(file, map_location=location)[0].tolist() == [0, 1, 2]


def test_tensors_of_an_absent_device_need_a_map_location():
    source = zipfile.ZipFile(saved_here({"x": trt.arange(3)}))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for info in source.infolist():
            # The location "cpu", with its length before it, becomes "cuda:0".
            data = source.read(info).replace(b"X\x03\x00\x00\x00cpu", b"X\x06\x00\x00\x00cuda:0")
            archive.writestr(info.filename, data)
    if not trt.cuda.is_available():
        with pytest.raises(RuntimeError, match="CUDA device but .*is_available.. is False.*map_location"):
            serialization.load(io.BytesIO(buffer.getvalue()))
    for location in ("cpu", {"cuda:0": "cpu"}, lambda storage, where: storage):
        assert serialization.load(io.BytesIO(buffer.getvalue()), map_location=location)["x"].tolist() == [0, 1, 2]


def test_mmap(tmp_path):
    path = tmp_path / "model.pt"
    torch.save({"x": torch.arange(1000.0), "e": torch.zeros(0), "y": torch.arange(3)}, path)
    before = path.read_bytes()
    loaded = serialization.load(path, mmap=True)
    assert loaded["x"].tolist() == list(range(1000))
    assert loaded["e"].numel() == 0
    loaded["x"].fill_(1.0)
    assert path.read_bytes() == before
    with pytest.raises(ValueError, match="f must be a file path"):
        serialization.load(io.BytesIO(before), mmap=True)
    assert torch.load(path, mmap=True)["y"].tolist() == [0, 1, 2]


def test_pytorch_maps_our_files(tmp_path):
    path = tmp_path / "model.pt"
    serialization.save({"x": trt.arange(1000.0)}, path)
    assert torch.load(path, mmap=True)["x"].tolist() == list(range(1000))


def test_bad_targets(tmp_path):
    with pytest.raises(AttributeError, match="'write' attribute"):
        serialization.save([1], 3)
    with pytest.raises(AttributeError, match="path or a binary file"):
        serialization.load(3)
    with pytest.raises(RuntimeError, match="Parent directory .*no such folder does not exist"):
        serialization.save([1], tmp_path / "no such folder" / "model.pt")
    with pytest.raises(FileNotFoundError):
        serialization.load(tmp_path / "no such folder" / "model.pt")


def small_network(library):
    nn = library.nn
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Unflatten(1, (1, 4)), nn.LSTM(4, 2, batch_first=True))


LAYERS = [trt.nn.Sequential, trt.nn.Linear, trt.nn.BatchNorm1d, trt.nn.ReLU, trt.nn.Unflatten, trt.nn.LSTM]


@pytest.mark.parametrize(("library", "save"), [(trt, saved_here), (torch, saved_there)], ids=["here", "there"])
@pytest.mark.parametrize("protocol", [2, 4])
def test_whole_modules_load_when_their_classes_are_allowed(library, save, protocol):
    module = small_network(library).eval()
    file = save(module, pickle_protocol=protocol)
    with serialization.safe_globals(LAYERS):
        loaded = serialization.load(file)
    x = torch.randn(5, 3)
    expected = module(x if library is torch else trt.from_dlpack(x))[0]
    assert type(loaded[0]) is trt.nn.Linear
    torch.testing.assert_close(torch.tensor(loaded(trt.from_dlpack(x))[0].tolist()), torch.tensor(expected.tolist()))
    for (name, there), here in zip(module.state_dict().items(), loaded.state_dict().values(), strict=True):
        assert here.tolist() == there.tolist(), name


@pytest.mark.parametrize("save", [saved_here, saved_there])
def test_modules_whose_classes_are_not_allowed_are_refused(save):
    file = save(small_network(trt if save is saved_here else torch))
    with serialization.safe_globals(LAYERS[:-1]), pytest.raises(pickle.UnpicklingError, match=r"LSTM was not an allowed global.*add_safe_globals\(\[(torch|tensorrt_lite)\.nn\.modules\.rnn\.LSTM\]\)"):
        serialization.load(file)


class Network(trt.nn.Module):
    """A class of the user's own, which a file names as tests.serialization.test_files.Network."""

    def __init__(self):
        super().__init__()
        self.layer = trt.nn.Linear(3, 2)
        self.activation = trt.nn.functional.relu

    def forward(self, x):
        return self.activation(self.layer(x))


class Marked(trt.Tensor):
    pass


@pytest.mark.parametrize(("library", "save"), [(trt, saved_here), (torch, saved_there)], ids=["here", "there"])
def test_whole_modules_of_layers_load_without_executing_anything(library, save):
    module = small_network(library).eval()
    file = save({"model": module, "epoch": 3})
    with pytest.raises(pickle.UnpicklingError, match="was not an allowed global"):
        serialization.load(file)
    file.seek(0)
    loaded = serialization.load(file, weights_only=False, allow_code=False)["model"]
    x = torch.randn(5, 3)
    expected = module(x if library is torch else trt.from_dlpack(x))[0]
    torch.testing.assert_close(torch.tensor(loaded(trt.from_dlpack(x))[0].tolist()), torch.tensor(expected.tolist()))
    if library is torch:
        older = io.BytesIO()
        torch.save(module, older, _use_new_zipfile_serialization=False)
        older.seek(0)
        assert type(serialization.load(older, weights_only=False, allow_code=False)[0]) is trt.nn.Linear
    encoder = library.nn.TransformerEncoderLayer(8, 2, dropout=0.0).eval()
    loaded = serialization.load(save(encoder), weights_only=False, allow_code=False)
    assert loaded.activation is trt.nn.functional.relu
    assert loaded(trt.ones(2, 1, 8)).shape == (2, 1, 8)


def test_only_weights_only_false_executes_what_a_file_names(tmp_path):
    class Evil:
        def __reduce__(self):
            return exec, (f"open({str(tmp_path / 'ran')!r}, 'w').close()",)

    for obj in (Evil(), Network()):
        with pytest.raises(pickle.UnpicklingError, match="nothing that a file names is executed"):
            serialization.load(saved_here(obj), weights_only=False, allow_code=False)
        with pytest.raises(pickle.UnpicklingError):
            serialization.load(saved_here(obj))
    assert not (tmp_path / "ran").exists()
    with pytest.raises(RuntimeError, match="contradict"):
        serialization.load(saved_here(Evil()), weights_only=True, allow_code=True)
    serialization.load(saved_here(Evil()), weights_only=False)
    assert (tmp_path / "ran").exists()


def test_weights_only_false_loads_what_pytorch_loads():
    model, optimizer = Network(), {}
    model.hook = [trt.ones(2).as_subclass(Marked), trt.arange(4).untyped_storage(), trt.Size([2]), trt.float16, trt.device("cpu"), None, {1, 2}]
    model.shared = model.layer.weight
    for protocol in (2, 4):
        loaded = serialization.load(saved_here({"m": model, "o": optimizer}, pickle_protocol=protocol), weights_only=False)["m"]
        assert type(loaded) is Network
        assert loaded.shared is loaded.layer.weight
        assert type(loaded.hook[0]) is Marked
        assert loaded.hook[0].tolist() == [1, 1]
        assert loaded.hook[2:] == model.hook[2:]
        x = trt.randn(4, 3)
        assert loaded(x).tolist() == model(x).tolist()
    for new in (True, False):
        file = io.BytesIO()
        torch.save(small_network(torch), file, _use_new_zipfile_serialization=new)
        file.seek(0)
        assert type(serialization.load(file, allow_code=True)[0]) is trt.nn.Linear
    with pytest.raises(pickle.UnpicklingError, match="does not have"):
        serialization.load(saved_there(torch.fx.Node), allow_code=True)


# ---- files that are replaced -------------------------------------------------------------------------------------------


def test_a_mapped_checkpoint_is_saved_under_its_own_name(tmp_path):
    path = tmp_path / "model.pt"
    for numel in (4, 400_000):
        serialization.save({"x": trt.arange(numel)}, path)
        loaded = serialization.load(path, mmap=True)
        serialization.save({"x": trt.zeros(2)}, path)
        assert loaded["x"].sum().item() == numel * (numel - 1) // 2
        serialization.save(loaded, path)
        assert serialization.load(path)["x"].tolist() == loaded["x"].tolist()
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.pt"]


def failing():
    raise OSError("the disk is full")


class Unpicklable:
    def __reduce__(self):
        failing()


def test_a_save_that_fails_leaves_the_old_file(tmp_path):
    path = tmp_path / "model.pt"
    serialization.save([1], path)
    before = path.read_bytes()
    with pytest.raises(OSError, match="disk is full"):
        serialization.save([trt.ones(3), Unpicklable()], path)
    assert path.read_bytes() == before
    program = f"""
import os, tensorrt_lite as t
from tensorrt_lite._checkpoint import archive
archive.ArchiveWriter.close = lambda self: os._exit(7)
t.save([t.ones(1000)], {str(path)!r})
"""
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=60).returncode == 7
    assert path.read_bytes() == before


def test_permissions_and_links_stay(tmp_path):
    path, link = tmp_path / "model.pt", tmp_path / "link.pt"
    mask = os.umask(0o027)
    try:
        serialization.save([1], path)
    finally:
        os.umask(mask)
    assert path.stat().st_mode & 0o777 == 0o640
    path.chmod(0o604)
    link.symlink_to("model.pt")
    serialization.save([2], link)
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o604
    assert serialization.load(path) == [2]
    (tmp_path / "dangling").symlink_to("new.pt")
    serialization.save([3], tmp_path / "dangling")
    assert serialization.load(tmp_path / "new.pt") == [3]
    with pytest.raises(OSError, match="Is a directory"):
        serialization.save([1], tmp_path)


def test_pipes_are_written_to_directly(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE)
    serialization.save({"x": trt.ones(3)}, pipe)
    assert serialization.load(io.BytesIO(reader.communicate(timeout=60)[0]))["x"].tolist() == [1, 1, 1]
    program = "import tensorrt_lite as t; t.save([1], '/dev/stdout')"
    done = subprocess.run([sys.executable, "-c", program], check=True, timeout=60, stdout=subprocess.PIPE)
    assert serialization.load(io.BytesIO(done.stdout)) == [1]


# ---- file objects of the caller ----------------------------------------------------------------------------------------


class Keeps(io.BytesIO):
    """Keeps every buffer that it was given to fill or to write."""

    def __init__(self, *args):
        super().__init__(*args)
        self.kept = []

    def readinto(self, buffer):
        self.kept.append(buffer)
        return super().readinto(buffer)

    def write(self, data):
        self.kept.append(data)
        return super().write(data)


@pytest.mark.parametrize("numel", [16, 600_000])
@pytest.mark.parametrize("legacy", [False, True])
def test_buffers_of_a_load_show_no_tensor(numel, legacy):
    source = io.BytesIO()
    torch.save({"a": torch.full((numel,), 7.0)}, source, _use_new_zipfile_serialization=not legacy)
    file = Keeps(source.getvalue())
    loaded = serialization.load(file)
    for view in file.kept:
        try:
            view[:] = b"\xff" * len(view)
        except ValueError:
            pass  # released
    assert bool((loaded["a"] == 7).all())


def test_what_a_save_hands_out_does_not_change_with_the_tensor():
    x = trt.full((400_000,), 7.0)
    file = Keeps()
    serialization.save({"x": x}, file)
    x.fill_(8)
    x.untyped_storage().resize_(10**7)
    assert b"".join(file.kept) == file.getvalue()
    assert bool((serialization.load(io.BytesIO(b"".join(file.kept)))["x"] == 7).all())


class Answers(io.BytesIO):
    def __init__(self, data, answer):
        super().__init__(data)
        self.answer = answer

    def readinto(self, buffer):
        return self.answer


@pytest.mark.parametrize("answer", [-1, 1 << 40, None, "x", 0])
def test_files_that_answer_nonsense(answer):
    data = saved_here({"x": trt.ones(1000)}).getvalue()
    with pytest.raises(RuntimeError):
        serialization.load(Answers(data, answer))


def test_an_archive_after_other_bytes_is_read_in_place():
    data = saved_here({"x": trt.arange(5)}).getvalue()
    file = io.BytesIO(b"header " + data)
    file.seek(7)
    assert serialization.load(file)["x"].tolist() == [0, 1, 2, 3, 4]


# ---- map_location --------------------------------------------------------------------------------------------------------


class OwnError(Exception):
    pass


def raising(storage, location):
    raise OwnError


@pytest.mark.parametrize("legacy", [False, True])
def test_functions_of_map_location(legacy):
    file = io.BytesIO()
    torch.save({"a": torch.arange(3.0)}, file, _use_new_zipfile_serialization=not legacy)

    def load(function):
        file.seek(0)
        return serialization.load(file, map_location=function)["a"]

    for junk in (5, "cpu", trt.ones(3), object()):
        with pytest.raises(RuntimeError, match="map_location must return a storage"):
            load(lambda storage, location, junk=junk: junk)
    with pytest.raises(OwnError):
        load(raising)
    assert load(lambda storage, location: storage.clone().fill_(0)).tolist() == [0, 0, 0]
    assert load(lambda storage, location: None).tolist() == [0, 1, 2]


def test_another_packages_pickling_does_not_reach_files():
    """dill replaces entries of the Python pickler's table, by which functions without a name and classes of __main__ would be written."""
    code = """
import io, pickle
from types import FunctionType
def by_value(pickler, obj): pickler.save_reduce(print, ("taken",), obj=obj)
by_value.__module__ = "dill"
for kind in (FunctionType, type, dict): pickle._Pickler.dispatch[kind] = by_value
import tensorrt_lite as trt
file = io.BytesIO()
trt.save({"a": [1, trt.ones(2)], "type": dict}, file)
file.seek(0)
read = trt.load(file, weights_only=False)
assert read["a"][1].tolist() == [1.0, 1.0] and read["type"] is dict
try: trt.save({"f": lambda: 1}, io.BytesIO())
except pickle.PicklingError: print("refused")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "refused\n", done.stderr


@pytest.mark.parametrize("zipped", [True, False])
def test_writers_are_flushed_once_the_file_is_whole(zipped):
    class Upload(io.BytesIO):
        sent = None

        def flush(self):
            self.sent = self.getvalue()

    upload = Upload()
    trt.save({"w": trt.ones(3)}, upload, _use_new_zipfile_serialization=zipped)
    assert upload.sent == upload.getvalue() and trt.load(io.BytesIO(upload.sent))["w"].tolist() == [1.0] * 3


@pytest.mark.filterwarnings("ignore:TypedStorage")
def test_storages_and_classes_in_tuples_and_sets():
    x = trt.arange(4.0)
    held = x.storage()
    given = {"tuple": (held, 1, (held, "a")), "set": {trt.Tensor}, "key": {trt.Tensor: (trt.nn.Parameter,)}, "frozen": frozenset((trt.float32, trt.Tensor)), "x": x}
    buffer = io.BytesIO()
    serialization.save(given, buffer)
    for options in ({}, {"weights_only": False}):
        buffer.seek(0)
        found = serialization.load(buffer, **options)
        first, one, (second, text) = found["tuple"]
        assert type(first) is type(second) is trt.TypedStorage
        assert first.tolist() == [0, 1, 2, 3]
        assert first.untyped()._cdata == second.untyped()._cdata == found["x"].untyped_storage()._cdata
        assert (one, text) == (1, "a")
        assert found["set"] == {trt.Tensor}
        assert found["key"] == {trt.Tensor: (trt.nn.Parameter,)}
        assert found["frozen"] == frozenset((trt.float32, trt.Tensor))
