"""torch.hub: models by the `hubconf.py` of a local folder, and files of weights, which are downloaded to a cache where they are not in it.

Repositories on GitHub are not fetched: clone them and use ``source="local"``.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlparse

from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_listing = _LazyModule("tensorrt_lite._names.listing")
_replace = _LazyModule("tensorrt_lite._checkpoint.replace")
_serialization = _LazyModule("tensorrt_lite.serialization")

if TYPE_CHECKING:
    from types import ModuleType

try:
    from tqdm.auto import tqdm
except ImportError:
    tqdm = None  # packages show the progress of their own downloads with it

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
_BLOCK = 1 << 17
_folder: str | None = None


def _get_torch_home() -> str:
    """$TORCH_HOME, else `torch` in the user's cache ($XDG_CACHE_HOME, ~/.cache): the folder that PyTorch uses."""
    return os.path.expanduser(os.getenv("TORCH_HOME", os.path.join(os.getenv("XDG_CACHE_HOME", "~/.cache"), "torch")))


def get_dir() -> str:
    """The folder of what was downloaded: that of `set_dir`, else `hub` in PyTorch's."""
    return os.path.join(_get_torch_home(), "hub") if _folder is None else _folder


def set_dir(d: str | os.PathLike[str]) -> None:
    """Have another folder hold what is downloaded."""
    global _folder
    _folder = os.path.expanduser(os.fspath(d))


def _hubconf(repo_or_dir: Any, source: str) -> ModuleType:
    from importlib.util import module_from_spec, spec_from_file_location

    source = source.lower()
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    if source == "github":
        raise NotImplementedError(f'hub: repositories are not fetched (docs/gaps.md). Clone {repo_or_dir} and load it with source="local".')
    path = Path(os.fspath(repo_or_dir), "hubconf.py")
    if not path.exists():
        raise FileNotFoundError(f"[Errno 2] No such file or directory: '{path}'")
    spec = spec_from_file_location("hubconf", path)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(path.parent))
    missing = [name for name in getattr(module, "dependencies", None) or () if not _installed(name)]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    return module


def _installed(name: str) -> bool:
    from importlib.util import find_spec

    return find_spec(name) is not None


def _entry(module: ModuleType, model: str) -> Any:
    if not isinstance(model, str):
        raise ValueError("Invalid input: model should be a string of function name")
    function = getattr(module, model, None)
    if not callable(function):
        raise RuntimeError(f"Cannot find callable {model} in hubconf")
    return function


def load(repo_or_dir: Any, model: str, *args: Any, source: str = "github", trust_repo: Any = "check", force_reload: bool = False, verbose: bool = True,
         skip_validation: bool = False, **kwargs: Any) -> Any:  # fmt: skip
    """What the function `model` of the folder's `hubconf.py` returns, which is executed. NotImplementedError for source="github", the default."""
    return _entry(_hubconf(repo_or_dir, source), model)(*args, **kwargs)


def list(github: Any, force_reload: bool = False, skip_validation: bool = False, trust_repo: Any = "check", verbose: bool = True, *, source: str = "github") -> Any:
    """Names of the functions that a repository's `hubconf.py` offers."""
    module = _hubconf(github, source)
    return [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]


def help(github: Any, model: str, force_reload: bool = False, skip_validation: bool = False, trust_repo: Any = "check", *, source: str = "github") -> str | None:
    """The docstring of such a function."""
    return _entry(_hubconf(github, source), model).__doc__


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Write what a URL leads to into a file, once all of it is there. RuntimeError where its SHA-256 does not begin with hash_prefix, and what
    `urllib` raises (URLError without a network). progress has no effect."""
    from urllib.request import Request, urlopen

    digest = hashlib.sha256()
    with urlopen(Request(url, headers={"User-Agent": "torch.hub"})) as answer, _replace.replacing(os.path.expanduser(dst)) as file:
        while block := answer.read(_BLOCK):
            digest.update(block)
            file.write(block)
        if hash_prefix is not None and not digest.hexdigest().startswith(hash_prefix):
            raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{digest.hexdigest()}")')


def load_state_dict_from_url(url: str, model_dir: str | None = None, map_location: Any = None, progress: bool = True, check_hash: bool = False,
                             file_name: str | None = None, weights_only: bool = False) -> Any:  # fmt: skip
    """`load` the file of a URL from `checkpoints` in the hub's folder, downloading it first where it is not there. check_hash: compare it with the
    hash in its name (`name-0123abcd.pth`). Nothing that the file says is executed: weights_only=False builds whole modules of this package's layers."""
    folder = os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir
    os.makedirs(folder, exist_ok=True)
    name = file_name or os.path.basename(urlparse(url).path)
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        sys.stderr.write(f'Downloading: "{url}" to {path}\n')
        found = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, path, found.group(1) if found else None, progress)
    return _serialization.load(path, map_location=map_location, weights_only=weights_only, allow_code=False)


def __dir__() -> Any:
    return _listing.public(globals())
