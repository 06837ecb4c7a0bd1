"""GeneratorBase of cysrc/core/random.pyx: seeds, states as bytes, copies, errors.

Uses the installed extension; without one, compiles random.pyx alone, which shows that it needs no other module.
"""

from __future__ import annotations

import copy
import importlib
import pickle
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from types import ModuleType

import pytest

CORE = Path(__file__).resolve().parents[2] / "cysrc" / "core"
STATE_BYTES = 5056


def compile_alone(folder: Path) -> ModuleType:
    pytest.importorskip("Cython")
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None or not CORE.exists():
        pytest.skip("needs a C compiler and the sources")
    package = folder / "generator_alone"
    package.mkdir()
    (package / "__init__.py").touch()
    for source in CORE.glob("random*"):
        shutil.copy(source, package)
    subprocess.run([sys.executable, "-m", "cython", "-3", "generator_alone/random.pyx"], cwd=folder, check=True)
    subprocess.run(
        [compiler, "-O1", "-shared", "-fPIC", f"-I{sysconfig.get_paths()['include']}", "-I.", "random.c", "-o",
         "random" + sysconfig.get_config_var("EXT_SUFFIX"), "-lm"],
        cwd=package, check=True,
    )  # fmt: skip
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module("generator_alone.random")
    finally:
        sys.path.remove(str(folder))


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    try:
        return importlib.import_module("tensorrt_lite._C.core.random")
    except ImportError:
        return compile_alone(tmp_path_factory.mktemp("generator"))


@pytest.mark.parametrize("seed", [0, 1, -1, -(2**63), 2**64 - 1, 2**32 + 3])
def test_state_bytes_equal_pytorch(module: ModuleType, seed: int) -> None:
    torch = pytest.importorskip("torch")
    theirs = torch.Generator().manual_seed(seed)
    ours = module.GeneratorBase()
    assert ours.manual_seed(seed) is ours
    assert ours.initial_seed() == theirs.initial_seed() == seed % 2**64
    assert ours.get_state_bytes() == bytes(theirs.get_state().numpy())
    torch.randn(3, generator=theirs)
    torch.rand(1001, generator=theirs)
    state = bytes(theirs.get_state().numpy())
    ours.set_state_bytes(state)
    assert ours.get_state_bytes() == state


def test_unseeded_generator_has_pytorchs_default_seed(module: ModuleType) -> None:
    torch = pytest.importorskip("torch")
    assert module.GeneratorBase().initial_seed() == torch.Generator().initial_seed()
    assert module.GeneratorBase().device == "cpu"


def test_seed_is_random_and_reported(module: ModuleType) -> None:
    generator = module.GeneratorBase()
    seeds = {generator.seed() for _ in range(4)}
    assert len(seeds) == 4 and generator.initial_seed() in seeds
    again = module.GeneratorBase().manual_seed(generator.initial_seed())
    assert again.get_state_bytes() == generator.get_state_bytes()


@pytest.mark.parametrize("seed", [1.5, True, "a", None])
def test_seed_of_wrong_type(module: ModuleType, seed: object) -> None:
    with pytest.raises(RuntimeError, match=f"manual_seed expected a long, but got {type(seed).__name__}"):
        module.GeneratorBase().manual_seed(seed)


@pytest.mark.parametrize("seed", [2**64, -(2**63) - 1])
def test_seed_out_of_range(module: ModuleType, seed: int) -> None:
    with pytest.raises(ValueError, match="Overflow when unpacking long long"):
        module.GeneratorBase().manual_seed(seed)


def test_wrong_states_are_refused_and_change_nothing(module: ModuleType) -> None:
    generator = module.GeneratorBase()
    before = generator.get_state_bytes()
    with pytest.raises(RuntimeError, match="size 5056 but found the input RNG state size to be 100"):
        generator.set_state_bytes(before[:100])
    with pytest.raises(RuntimeError, match="Invalid mt19937 state"):
        generator.set_state_bytes(bytes(STATE_BYTES))
    with pytest.raises(TypeError):
        generator.set_state_bytes(None)
    assert generator.get_state_bytes() == before


def test_copies_are_independent_and_keep_the_class(module: ModuleType) -> None:
    class Derived(module.GeneratorBase):
        pass

    generator = Derived().manual_seed(3)
    for other in (generator.clone_state(), copy.deepcopy(generator)):
        assert type(other) is Derived and other is not generator
        assert other.get_state_bytes() == generator.get_state_bytes()
        other.manual_seed(4)
        assert generator.initial_seed() == 3
    plain = module.GeneratorBase().manual_seed(5)
    assert pickle.loads(pickle.dumps(plain)).get_state_bytes() == plain.get_state_bytes()


def test_offset_is_for_counter_based_generators(module: ModuleType) -> None:
    with pytest.raises(RuntimeError, match="does not use offset"):
        module.GeneratorBase().get_offset()


def test_default_generator_can_be_replaced(module: ModuleType) -> None:
    previous = module.default_generator
    try:
        replacement = module.GeneratorBase()
        module.set_default_generator(replacement)
        assert module.default_generator is replacement
        with pytest.raises(TypeError):
            module.set_default_generator(None)
    finally:
        module.set_default_generator(previous)
