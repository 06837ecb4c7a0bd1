"""hub: local repositories and the cache of downloaded files, beside PyTorch's."""

from __future__ import annotations

import hashlib
from urllib.error import URLError

import pytest

import tensorrt_lite as trt

HUBCONF = '''
dependencies = ["math"]

def linear(width, bias=True):
    """A layer."""
    import sys
    torch = sys.modules[LIBRARY]
    return torch.nn.Linear(width, 2, bias=bias)

def _hidden():
    pass
'''


@pytest.fixture
def repository(tmp_path):
    (tmp_path / "hubconf.py").write_text(HUBCONF.replace("LIBRARY", "'tensorrt_lite'"))
    return tmp_path


def test_local_repositories(repository):
    layer = trt.hub.load(repository, "linear", 3, source="local", bias=False)
    assert isinstance(layer, trt.nn.Linear) and layer.weight.shape == (2, 3) and layer.bias is None
    assert trt.hub.list(repository, source="local") == ["linear"]
    assert trt.hub.help(repository, "linear", source="local") == "A layer."


def test_errors_are_pytorchs(repository):
    torch = pytest.importorskip("torch")
    calls = [
        lambda hub: hub.load(repository, "no_such", source="local"), lambda hub: hub.load(repository, 3, source="local"), lambda hub: hub.load(repository, "linear", source="remote"),
        lambda hub: hub.load(repository / "nowhere", "linear", source="local"),
    ]  # fmt: skip
    for call in calls:
        said = []
        for hub in (trt.hub, torch.hub):
            with pytest.raises((RuntimeError, ValueError, OSError)) as error:
                call(hub)
            said.append((type(error.value), str(error.value)))
        assert said[0] == said[1]
    (repository / "hubconf.py").write_text("dependencies = ['no_such_package']")
    with pytest.raises(RuntimeError, match="Missing dependencies: no_such_package"):
        trt.hub.load(repository, "linear", source="local")


def test_repositories_are_not_fetched():
    with pytest.raises(NotImplementedError, match='Clone pytorch/vision and load it with source="local"'):
        trt.hub.load("pytorch/vision", "resnet18")


def test_folders(monkeypatch, tmp_path):
    torch = pytest.importorskip("torch")
    for name, value in (("TORCH_HOME", str(tmp_path)), ("TORCH_HOME", None), ("XDG_CACHE_HOME", str(tmp_path))):
        monkeypatch.delenv(name, raising=False) if value is None else monkeypatch.setenv(name, value)
        assert trt.hub.get_dir() == torch.hub.get_dir()
    monkeypatch.setattr(trt.hub, "_folder", None)
    trt.hub.set_dir(tmp_path / "other")
    assert trt.hub.get_dir() == str(tmp_path / "other")
    assert trt.hub.HASH_REGEX.search("resnet18-f37072fd.pth").group(1) == torch.hub.HASH_REGEX.search("resnet18-f37072fd.pth").group(1) == "f37072fd"


def test_weights_come_from_the_cache_or_a_url(tmp_path, capsys):
    trt.save({"w": trt.ones(2)}, tmp_path / "weights.pt")
    content = (tmp_path / "weights.pt").read_bytes()
    name = f"weights-{hashlib.sha256(content).hexdigest()[:8]}.pt"
    (tmp_path / name).write_bytes(content)
    url, cache = (tmp_path / name).as_uri(), tmp_path / "cache"
    for _ in range(2):
        assert trt.hub.load_state_dict_from_url(url, str(cache), check_hash=True, weights_only=True)["w"].tolist() == [1.0, 1.0]
    assert capsys.readouterr().err.count("Downloading:") == 1
    (tmp_path / "weights-00000000.pt").write_bytes(content)
    with pytest.raises(RuntimeError, match="invalid hash value"):
        trt.hub.load_state_dict_from_url((tmp_path / "weights-00000000.pt").as_uri(), str(cache), check_hash=True)
    assert sorted(path.name for path in cache.iterdir()) == [name]
    with pytest.raises(URLError):
        trt.utils.model_zoo.load_url((tmp_path / "nowhere.pt").as_uri(), str(cache))
