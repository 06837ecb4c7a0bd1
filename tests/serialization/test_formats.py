"""Both of PyTorch's formats in both directions, and the options of `serialization` beside PyTorch's."""

from __future__ import annotations

import io
import mmap
import os
import pickle
import warnings
import zipfile
from argparse import Namespace
from collections import OrderedDict

import numpy
import pytest

import tensorrt_lite as trt
from tensorrt_lite import serialization
from tensorrt_lite.compat import torch_alias

torch = pytest.importorskip("torch")


def contents(library):
    base = library.arange(24, dtype=library.float32)
    return {
        "weight": base.view(4, 6), "shared": base[6:12], "transposed": base.view(4, 6).t(), "half": library.ones(5, dtype=library.float16),
        "bfloat": library.ones(3, dtype=library.bfloat16), "flag": library.tensor([True, False]), "complex": library.ones(3, dtype=library.complex64),
        "double": library.ones((), dtype=library.float64), "empty": library.zeros(0, 3), "unsigned": library.arange(4, dtype=library.int32).to(library.uint16),
        "parameter": library.nn.Parameter(library.ones(2, 2)), "plain": {"epoch": 7, "name": "net", "steps": [1, 2, 70000, -5], "t": (1, None, True)},
        "ordered": OrderedDict(a=1, b=library.zeros(2)), "size": library.Size([1, 2]), "dtype": library.float32, "device": library.device("cpu"),
    }  # fmt: skip


def described(value):
    """Data of either library as data of Python."""
    if type(value).__name__ in ("Tensor", "Parameter"):
        numbers = value.detach().to(complex_of(value)) if value.is_complex() else value.detach()
        return str(value.dtype), tuple(value.shape), value.stride(), numbers.tolist(), value.requires_grad, type(value).__name__
    if isinstance(value, dict):
        return {key: described(part) for key, part in value.items()}
    if type(value).__name__ in ("dtype", "device"):
        return str(value)
    return [type(value).__name__, *map(described, value)] if isinstance(value, (list, tuple)) else value


def complex_of(value):
    return value.dtype


def rewound(buffer):
    buffer.seek(0)
    return buffer


# ---- the format before 1.6


@pytest.mark.parametrize("protocol", [2, 4])
def test_the_older_format_goes_both_ways(protocol):
    ours, theirs = io.BytesIO(), io.BytesIO()
    serialization.save(contents(trt), ours, pickle_protocol=protocol, _use_new_zipfile_serialization=False)
    torch.save(contents(torch), theirs, pickle_protocol=protocol, _use_new_zipfile_serialization=False)
    assert not zipfile.is_zipfile(ours)
    there = torch.load(rewound(ours), weights_only=protocol == 2)
    assert described(there) == described(contents(torch))
    assert there["weight"].untyped_storage().data_ptr() == there["shared"].untyped_storage().data_ptr()
    for file in (ours, theirs):
        here = serialization.load(rewound(file))
        assert described(here) == described(contents(trt))
        here["weight"][1, 0] = -1.0
        assert here["shared"][0].item() == -1.0


def test_the_older_format_in_paths_and_unfriendly_files(tmp_path):
    serialization.save({"x": trt.arange(300_000)}, tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    assert torch.equal(torch.load(tmp_path / "old.pt")["x"], torch.arange(300_000))

    class Writer:
        def __init__(self):
            self.parts = []

        def write(self, data):
            assert isinstance(data, bytes)  # never a view of a tensor's memory
            self.parts.append(data)

    writer = Writer()
    serialization.save([trt.arange(300_000)], writer, _use_new_zipfile_serialization=False)
    assert serialization.load(io.BytesIO(b"".join(writer.parts)))[0].sum().item() == 299_999 * 150_000
    for new in (False, True):
        for kind in (AttributeError, pickle.PicklingError):
            with pytest.raises(kind, match=r"Can't pickle local object '.*<locals>\.<lambda>'"):
                serialization.save({"f": lambda: 1}, io.BytesIO(), _use_new_zipfile_serialization=new)


@pytest.mark.parametrize("legacy", [False, True])
def test_whole_modules_and_optimizers_go_to_pytorch_and_back_under_the_alias(legacy):
    def made(library):
        library.manual_seed(0)
        model = library.nn.Sequential(library.nn.BatchNorm1d(3), library.nn.Linear(3, 4), library.nn.GELU(), library.nn.Linear(4, 2))
        optimizer = library.optim.Adam(model.parameters(), lr=0.01)
        scheduler = library.optim.lr_scheduler.StepLR(optimizer, 2)
        for _ in range(3):
            model(library.arange(15.0).reshape(5, 3).sin()).square().sum().backward()
            optimizer.step()
            scheduler.step()
        return {"model": model, "optimizer": optimizer}

    def go_on(library, objects):
        """One step more: the optimizer holds the model's own parameters."""
        model, optimizer = objects["model"], objects["optimizer"]
        optimizer.zero_grad()
        model(library.arange(12.0).reshape(4, 3).cos()).square().sum().backward()
        optimizer.step()
        return [p.tolist() for p in model.parameters()]

    file, back = io.BytesIO(), io.BytesIO()
    with torch_alias() as alias:
        alias.save(made(alias), file, _use_new_zipfile_serialization=not legacy)
        expected = go_on(alias, made(alias))
    there = torch.load(rewound(file), weights_only=False)
    assert type(there["optimizer"]) is torch.optim.Adam and there["optimizer"].param_groups[0]["lr"] == pytest.approx(0.001)
    for ours, theirs in zip(expected, go_on(torch, there)):
        torch.testing.assert_close(torch.tensor(theirs), torch.tensor(ours))
    torch.save(made(torch), back, _use_new_zipfile_serialization=not legacy)
    expected = go_on(torch, made(torch))
    with torch_alias() as alias:
        again = alias.load(rewound(back), weights_only=False)
        assert type(again["optimizer"]) is alias.optim.Adam
        found = go_on(alias, again)
        with pytest.raises(pickle.UnpicklingError):
            alias.load(rewound(back))
    for ours, theirs in zip(found, expected):
        torch.testing.assert_close(torch.tensor(ours), torch.tensor(theirs))


@pytest.mark.parametrize("name", ["Adadelta", "Adagrad", "AdamW", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop", "SGD", "Adafactor", "Muon"])
def test_every_optimizer_goes_to_pytorch_and_back(name):
    def made(library):
        w = library.nn.Parameter(library.arange(6.0).reshape(2, 3) / 7)
        objects = {"w": w, "optimizer": getattr(library.optim, name)([w], lr=0.01)}
        step(objects)
        step(objects)
        return objects

    def step(objects):
        w, optimizer = objects["w"], objects["optimizer"]
        optimizer.zero_grad()
        (w.sin() * w).sum().backward()
        optimizer.step()
        return w.detach().tolist()

    file, back = io.BytesIO(), io.BytesIO()
    with torch_alias() as alias:
        objects = made(alias)
        alias.save(objects, file)
        ours = step(objects)
    there = torch.load(rewound(file), weights_only=False)
    torch.testing.assert_close(torch.tensor(step(there)), torch.tensor(ours))
    objects = made(torch)
    torch.save(objects, back)
    theirs = step(objects)
    with torch_alias() as alias:
        here = alias.load(rewound(back), weights_only=False)
        assert type(here["optimizer"]) is getattr(alias.optim, name)
        again = step(here)
    torch.testing.assert_close(torch.tensor(again), torch.tensor(theirs))


# ---- who may be called


def test_environment_variables_are_heeded_under_the_alias_alone(monkeypatch):
    def outcome(library, **options):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return type(library.load(rewound(file), **options)).__name__
            except (pickle.UnpicklingError, RuntimeError) as error:
                return type(error).__name__

    file = io.BytesIO()
    torch.save(torch.nn.Linear(1, 1), file)
    names = "TORCH_FORCE_WEIGHTS_ONLY_LOAD", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"
    for values in ({}, {names[0]: "1"}, {names[1]: "1"}, {names[1]: "yes"}, {names[1]: "on"}, {names[0]: "true", names[1]: "y"}):
        for name in names:
            monkeypatch.delenv(name, raising=False)
        for name, value in values.items():
            monkeypatch.setenv(name, value)
        for options in ({}, {"weights_only": True}, {"weights_only": False}):
            with torch_alias() as alias:
                ours = outcome(alias, **options)
            assert ours == outcome(torch, **options), (values, options)
        assert outcome(trt) == "UnpicklingError"
    monkeypatch.delenv(names[0])
    with torch_alias() as alias, pytest.warns(UserWarning, match="forcing weights_only=False"):
        alias.load(rewound(file))


def test_a_module_for_pickles_is_no_way_around():
    file = io.BytesIO()
    serialization.save(trt.nn.Linear(1, 1), file)
    with pytest.raises(RuntimeError, match="explicit pickle_module"):
        serialization.load(rewound(file), weights_only=True, pickle_module=pickle)
    with pytest.raises(pickle.UnpicklingError):
        serialization.load(rewound(file), pickle_module=pickle)
    assert type(serialization.load(rewound(file), weights_only=False, pickle_module=pickle)) is trt.nn.Linear


def test_numbers_and_arrays_of_numpy_load_where_pytorch_loads_them():
    values = {"scalar": numpy.float32(3.5), "count": numpy.int64(-7), "array": numpy.arange(6, dtype=numpy.int32).reshape(2, 3), "flags": numpy.array([True, False])}
    multiarray = numpy._core.multiarray
    allowed = [multiarray.scalar, multiarray._reconstruct, numpy.ndarray, numpy.dtype, *(getattr(numpy.dtypes, f"{n}DType") for n in ("Float32", "Int64", "Int32", "Bool"))]
    for save in (torch.save, serialization.save):
        file = io.BytesIO()
        save(values, file)
        for library in (torch, trt):
            with pytest.raises(pickle.UnpicklingError):
                library.load(rewound(file))
            with library.serialization.safe_globals(allowed):
                loaded = library.load(rewound(file))
            assert loaded["scalar"] == 3.5 and type(loaded["scalar"]) is numpy.float32 and loaded["count"] == -7
            assert loaded["array"].dtype == numpy.int32 and loaded["array"].tolist() == [[0, 1, 2], [3, 4, 5]] and loaded["flags"].tolist() == [True, False]


def test_safe_globals_are_listed_and_forgotten():
    file = io.BytesIO()
    serialization.save({"f": OrderedDict, "p": Namespace}, file)
    unsafe = serialization.get_unsafe_globals_in_checkpoint(rewound(file))
    assert unsafe == torch.serialization.get_unsafe_globals_in_checkpoint(rewound(file))
    serialization.add_safe_globals([Namespace])
    try:
        assert serialization.get_safe_globals() == [Namespace]
        assert serialization.load(rewound(file))["p"] is Namespace
    finally:
        serialization.clear_safe_globals()
    assert serialization.get_safe_globals() == []


# ---- options


def test_skipped_data_is_left_out_of_files_and_not_read(tmp_path):
    state = {"a": trt.arange(1000.0), "b": trt.ones(3)}
    path, full = tmp_path / "holes.pt", tmp_path / "full.pt"
    with serialization.skip_data():
        serialization.save(state, path)
        serialization.save(state, file := io.BytesIO())
    serialization.save(state, full)
    for source in (path, rewound(file)):
        with zipfile.ZipFile(source) as archive:
            sizes = {info.filename.partition("/")[2]: (info.file_size, info.CRC) for info in archive.infolist()}
        assert sizes["data/0"] == (4000, 0) and sizes["data/1"] == (12, 0) and sizes["data.pkl"][1] != 0
    assert not serialization.load(path)["a"].any() and not torch.load(path)["a"].any()
    # the bytes in a pass of one's own
    with zipfile.ZipFile(full) as archive, open(path, "r+b") as out:
        where = path.read_bytes().index(b"data/0")
        assert where > 0
        with zipfile.ZipFile(path) as holes:
            info = next(entry for entry in holes.infolist() if entry.filename.endswith("data/0"))
        out.seek(info.header_offset + 26)
        lengths = int.from_bytes(out.read(2), "little") + int.from_bytes(out.read(2), "little")
        out.seek(info.header_offset + 30 + lengths)
        out.write(archive.read("full/data/0"))
    assert trt.equal(serialization.load(path)["a"], state["a"]) and torch.load(path)["a"].sum() == state["a"].sum().item()
    with serialization.skip_data():
        loaded = serialization.load(full)
        assert loaded["a"].shape == (1000,) and loaded["b"].dtype is trt.float32
        with pytest.raises(RuntimeError, match="Cannot use skip_data=True"):
            serialization.save(state, io.BytesIO(), _use_new_zipfile_serialization=False)
    assert trt.equal(serialization.load(full)["a"], state["a"])
    with pytest.raises(NotImplementedError):
        serialization.skip_data(materialize_fake_tensors=True)


def test_checksums_may_be_left_out():
    assert serialization.get_crc32_options() is torch.serialization.get_crc32_options() is True
    serialization.set_crc32_options(False)
    torch.serialization.set_crc32_options(False)
    try:
        for save, load in ((serialization.save, torch.load), (torch.save, serialization.load)):
            file = io.BytesIO()
            save({"a": (trt if save is serialization.save else torch).arange(4)}, file)
            with zipfile.ZipFile(file) as archive:
                assert {info.CRC for info in archive.infolist()} == {0}
            assert load(rewound(file))["a"].tolist() == [0, 1, 2, 3]
    finally:
        serialization.set_crc32_options(True)
        torch.serialization.set_crc32_options(True)


def test_the_byte_order_of_files_that_do_not_tell():
    big = io.BytesIO()
    serialization.save({"a": trt.tensor([1, 256], dtype=trt.int32)}, big, _disable_byteorder_record=True)
    with zipfile.ZipFile(big) as archive:
        assert not any(name.endswith("byteorder") for name in archive.namelist())
    for library in (torch, trt):
        options = library.serialization
        assert options.get_default_load_endianness() is None
        with pytest.raises(TypeError, match="Invalid argument type"):
            options.set_default_load_endianness("big")
        options.set_default_load_endianness(options.LoadEndianness.BIG)
        try:
            assert library.load(rewound(big))["a"].tolist() == [1 << 24, 1 << 16]
        finally:
            options.set_default_load_endianness(None)
        assert library.load(rewound(big))["a"].tolist() == [1, 256]


def test_shared_maps_change_the_file(tmp_path):
    path = tmp_path / "mapped.pt"
    serialization.save({"a": trt.zeros(4)}, path)
    assert serialization.get_default_mmap_options() == mmap.MAP_PRIVATE
    serialization.load(path, mmap=True)["a"].fill_(1)
    assert serialization.load(path)["a"].tolist() == [0, 0, 0, 0]
    with serialization.set_default_mmap_options(mmap.MAP_SHARED):
        loaded = serialization.load(path, mmap=True)["a"]
        loaded.fill_(2)
        del loaded
    assert serialization.get_default_mmap_options() == mmap.MAP_PRIVATE
    with zipfile.ZipFile(path) as archive:
        archive.testzip()
    for library in (torch, trt):
        with pytest.raises(ValueError, match="MAP_PRIVATE"):
            library.serialization.set_default_mmap_options(77)
    assert os.path.getsize(path) > 0


def test_packages_say_where_storages_lie(monkeypatch):
    monkeypatch.setattr(serialization, "_packages", [])
    seen = []

    def tagger(storage):
        seen.append(storage.nbytes())
        return "attic" if storage.nbytes() == 12 else None

    def restore(storage, location):
        return storage if location == "attic" else None

    serialization.register_package(5, tagger, restore)
    file = io.BytesIO()
    serialization.save({"a": trt.ones(3), "b": trt.ones(4)}, file)
    assert seen == [12, 16] and b"attic" in file.getvalue()
    loaded = serialization.load(rewound(file))
    assert loaded["a"].tolist() == [1, 1, 1] and loaded["b"].tolist() == [1, 1, 1, 1]
    assert serialization.location_tag(trt.ones(3).untyped_storage()) == "attic" and serialization.location_tag(trt.ones(4).untyped_storage()) == "cpu"
    serialization._packages.clear()
    for library in (torch, trt):
        storage = library.ones(1).untyped_storage()
        assert library.serialization.default_restore_location(storage, "cpu") is storage
        with pytest.raises(RuntimeError, match=r"don't know how to restore data location of .*UntypedStorage \(tagged with nowhere\)"):
            library.serialization.default_restore_location(storage, "nowhere")
        assert library.serialization.location_tag(library.empty(1, device="meta").untyped_storage()) == "meta"
    with pytest.raises(TypeError, match="must be a number"):
        serialization.register_package("first", tagger, restore)
    with pytest.raises(RuntimeError, match="cuda"):
        if trt.cuda.is_available():
            raise RuntimeError("cuda is here")
        serialization.validate_cuda_device("cuda:0")


def test_lesser_names_answer_as_pytorchs():
    for library in (torch, trt):
        there = library.serialization
        assert str(there.StorageType("FloatStorage")) == "StorageType(dtype=torch.float32)"
        assert issubclass(there.SourceChangeWarning, Warning)
        with there.mkdtemp() as folder:
            assert os.path.isdir(folder)
        assert there.check_module_version_greater_or_equal(numpy, (1, 0)) and not there.check_module_version_greater_or_equal(numpy, (99, 0))
        broken = type("broken", (), {"__version__": "x.y", "__name__": "broken"})
        with pytest.raises(RuntimeError, match="malformed"):
            there.check_module_version_greater_or_equal(broken, (1, 0))
        with pytest.warns(UserWarning, match="malformed"):
            assert there.check_module_version_greater_or_equal(broken, (1, 0), error_if_malformed=False)
        assert there.STORAGE_KEY_SEPARATOR == ","
