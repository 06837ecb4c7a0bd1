"""The C fills of cysrc/core/random_streams.h and loops/random_kernels.c against PyTorch itself.

The header and its kernels are compiled here, once per instruction set, and called through ctypes: no part of the package
is needed. Integers and masks must be equal, floats within 2 ulp of PyTorch's.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")

CORE = Path(__file__).resolve().parents[2] / "cysrc" / "core"
COMPILER = shutil.which("gcc") or shutil.which("cc")
pytestmark = pytest.mark.skipif(COMPILER is None or not CORE.exists(), reason="needs a C compiler and the sources")

STATE_BYTES = 5056
SEEDS = (0, 7, 2**32 + 5, 2**64 - 3)
SIZES = (0, 1, 2, 15, 16, 17, 31, 100, 255, 257, 5003)
FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
INTEGERS = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
NUMERIC = 10  # of DTYPES, the first that every fill knows
DTYPES = (
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
    torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.uint16, torch.uint32, torch.uint64,
)  # fmt: skip

ptr, i64, u64, f64, i32 = ctypes.c_void_p, ctypes.c_int64, ctypes.c_uint64, ctypes.c_double, ctypes.c_int
FILL = (ptr, i32, ptr, i64)
EXPORTS: dict[str, tuple[object, tuple[object, ...]]] = {
    "rs_manual_seed": (None, (ptr, u64)),
    "rs_get_state": (None, (ptr, ptr)),
    "rs_set_state": (i32, (ptr, ptr, ctypes.c_size_t)),
    "rs_random32": (ctypes.c_uint32, (ptr,)),
    "rs_random64": (u64, (ptr,)),
    "rs_next_u24": (ctypes.c_float, (ptr,)),
    "rs_next_u53": (f64, (ptr,)),
    "rs_next_normal": (f64, (ptr,)),
    "rs_uniform": (None, (*FILL, f64, f64)),
    "rs_normal": (None, (*FILL, f64, f64)),
    "rs_normal_serial": (None, (*FILL, f64, f64)),
    "rs_log_normal": (None, (*FILL, f64, f64)),
    "rs_random_from_to": (None, (*FILL, i64, u64)),
    "rs_random_full64": (None, FILL),
    "rs_random": (None, FILL),
    "rs_bernoulli": (None, (*FILL, f64)),
    "rs_bernoulli_f32": (None, (*FILL, ptr)),
    "rs_bernoulli_f64": (None, (*FILL, ptr)),
    "rs_exponential": (None, (*FILL, f64)),
    "rs_geometric": (None, (*FILL, f64)),
    "rs_cauchy": (None, (*FILL, f64, f64)),
    "rs_randperm": (None, (ptr, ptr, i64)),
    "rs_narrow_range": (None, (i32, ptr, ptr)),
    "rs_multinomial_f32": (i32, (ptr, ptr, i64, ptr, ptr, i64)),
    "rs_multinomial_f64": (i32, (ptr, ptr, i64, ptr, ptr, i64)),
    "rs_fill_tensor": (None, (ptr, ptr, i32, ptr, i32, ptr, ptr)),
    "rs_bernoulli_tensor": (None, (ptr, i32, ptr, i32, ptr, i32, ptr, ptr, ptr)),
}


class Fill(ctypes.Structure):
    """rs_fill of the header; `kind` counts in the order of rs_fill_kind."""

    _fields_ = [("kind", i32), ("a", f64), ("b", f64), ("start", i64), ("range", u64)]


class Streams:
    """One compiled copy of the header; `generator(seed)` makes states for its functions."""

    def __init__(self, library: ctypes.CDLL) -> None:
        addresses = (ctypes.c_void_p * len(EXPORTS)).in_dll(library, "exports")
        for (name, (result, arguments)), address in zip(EXPORTS.items(), addresses, strict=True):
            setattr(self, name, ctypes.CFUNCTYPE(result, *arguments)(address))
        self.state_size = ctypes.c_size_t.in_dll(library, "state_size").value

    def generator(self, seed: int) -> ctypes.Array[ctypes.c_char]:
        state = ctypes.create_string_buffer(self.state_size)
        self.rs_manual_seed(state, seed)
        return state

    def fill(self, name: str, state: object, dtype: torch.dtype, n: int, *arguments: object) -> torch.Tensor:
        out = torch.empty(n, dtype=dtype)
        getattr(self, name)(state, DTYPES.index(dtype), out.data_ptr(), n, *arguments)
        return out

    def fill_tensor(self, state: object, fill: Fill, x: torch.Tensor) -> None:
        geometry = (i64 * 64)(*x.shape), (i64 * 64)(*x.stride())
        self.rs_fill_tensor(state, ctypes.byref(fill), DTYPES.index(x.dtype), x.data_ptr(), x.dim(), *geometry)

    def get_state(self, state: object) -> torch.Tensor:
        out = torch.empty(STATE_BYTES, dtype=torch.uint8)
        self.rs_get_state(state, out.data_ptr())
        return out


MACHINES = {"base": "x86-64", "avx2": "x86-64-v3", "avx512": "x86-64-v4"}


@pytest.fixture(scope="module", params=list(MACHINES))
def streams(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Streams:
    flags = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    if {"base": "", "avx2": "avx2", "avx512": "avx512dq"}[request.param] not in flags:
        pytest.skip("the processor lacks this instruction set")
    folder = tmp_path_factory.mktemp("streams")
    source = folder / "shim.c"
    names = ", ".join(f"(void *){name}" for name in EXPORTS)
    source.write_text(
        f'#include "random_streams.h"\nvoid *exports[] = {{{names}}};\nsize_t state_size = sizeof(rs_state);\n'
    )
    library = folder / "shim.so"
    subprocess.run(
        [COMPILER, "-O2", "-fno-math-errno", "-shared", "-fPIC", f"-DISA={request.param}", f"-march={MACHINES[request.param]}",
         "-ffp-contract=off", f"-I{CORE}", source, CORE.parent / "loops" / "random_kernels.c", "-o", library, "-lm"],
        check=True,
    )  # fmt: skip
    return Streams(ctypes.CDLL(str(library)))


def ulps(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Distance in units of the last place, counted over the ordered bit patterns."""
    view = {2: torch.int16, 4: torch.int32, 8: torch.int64}[a.element_size()]

    def ordered(x: torch.Tensor) -> torch.Tensor:
        bits = x.view(view).to(torch.int64)
        lowest = torch.iinfo(view).min
        return torch.where(bits < 0, lowest - bits, bits)

    return (ordered(a) - ordered(b)).abs()


def assert_same(ours: torch.Tensor, theirs: torch.Tensor) -> None:
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
    if theirs.dtype.is_floating_point and theirs.numel():
        distance = ulps(ours, theirs)
        worst = int(distance.argmax())
        assert distance[worst] <= 2, (
            f"element {worst} of {len(ours)}: {ours[worst].item()!r} is {distance[worst].item()} ulp "
            f"from {theirs[worst].item()!r}; {(distance > 2).sum().item()} are beyond 2 ulp"
        )
    else:
        assert torch.equal(ours, theirs)


def check(
    streams: Streams,
    dtype: torch.dtype,
    theirs: Callable[[torch.Tensor, torch.Generator], object],
    name: str,
    *arguments: object,
    seeds: tuple[int, ...] = SEEDS,
    sizes: tuple[int, ...] = SIZES,
) -> None:
    """Runs all sizes in a row on one generator of each side, so that the draws spent by each call count too."""
    for seed in seeds:
        state, generator = streams.generator(seed), torch.Generator().manual_seed(seed)
        for n in sizes:
            expected = torch.empty(n, dtype=dtype)
            theirs(expected, generator)
            assert_same(streams.fill(name, state, dtype, n, *arguments), expected)
        assert torch.equal(streams.get_state(state)[:5016], generator.get_state()[:5016])


LARGE = (1_000_003,)


def words_drawn(generator: torch.Generator) -> int:
    return int.from_bytes(bytes(generator.get_state()[16:24].tolist()), "little")


@pytest.fixture
def bernoulli_from_engine() -> None:
    """PyTorch with MKL, on Intel's processors only, seeds a bernoulli stream of MKL's with a single word."""
    generator = torch.Generator().manual_seed(1)
    torch.empty(10).bernoulli_(0.5, generator=generator)
    if words_drawn(generator) == 1:
        pytest.skip("PyTorch takes bernoulli_ from MKL on this processor")


@pytest.mark.parametrize("bounds", [(0.0, 1.0), (-1.0, 1.0), (-0.1, 0.3), (0.1, 7.3), (1e6, 1e6 + 0.5), (2.0, 2.01)])
@pytest.mark.parametrize("dtype", FLOATS)
def test_uniform(streams: Streams, dtype: torch.dtype, bounds: tuple[float, float]) -> None:
    if dtype == torch.float16 and bounds[0] > 65504:
        pytest.skip("beyond float16")
    check(streams, dtype, lambda x, g: x.uniform_(*bounds, generator=g), "rs_uniform", *bounds)
    check(streams, dtype, lambda x, g: x.uniform_(*bounds, generator=g), "rs_uniform", *bounds, seeds=(3,), sizes=LARGE)


@pytest.mark.parametrize("dtype", FLOATS)
def test_standard_normal(streams: Streams, dtype: torch.dtype) -> None:
    check(streams, dtype, lambda x, g: x.normal_(generator=g), "rs_normal", 0.0, 1.0)
    check(streams, dtype, lambda x, g: x.normal_(generator=g), "rs_normal", 0.0, 1.0, seeds=(3, 4), sizes=LARGE)


@pytest.mark.parametrize(("mean", "std"), [(0.0, 1.0), (0.0, 0.02), (100.0, 1.7)])
@pytest.mark.skipif(torch.backends.cpu.get_cpu_capability() not in ("AVX2", "AVX512"), reason="PyTorch's scalar path")
def test_float32_normals_equal_to_the_bit(streams: Streams, mean: float, std: float) -> None:
    """Initial weights come from here, so that a seeded program starts at PyTorch's numbers and not beside them."""
    state, generator = streams.generator(7), torch.Generator().manual_seed(7)
    expected = torch.empty(*LARGE).normal_(mean, std, generator=generator)
    assert torch.equal(streams.fill("rs_normal", state, torch.float32, len(expected), mean, std), expected)


@pytest.mark.parametrize("dtype", FLOATS)
def test_normal_with_mean_away_from_zero(streams: Streams, dtype: torch.dtype) -> None:
    check(streams, dtype, lambda x, g: x.normal_(100.0, 1.7, generator=g), "rs_normal", 100.0, 1.7)


@pytest.mark.parametrize("dtype", FLOATS)
def test_normal_of_strided_tensor_is_serial(streams: Streams, dtype: torch.dtype) -> None:
    def theirs(x: torch.Tensor, generator: torch.Generator) -> None:
        strided = torch.empty(2 * len(x), dtype=dtype)[::2]
        # A tensor of one element counts as contiguous, which does not matter below 16.
        strided.normal_(0.0, 3.0, generator=generator)
        x.copy_(strided)

    check(streams, dtype, theirs, "rs_normal_serial", 0.0, 3.0)


@pytest.mark.parametrize("dtype", FLOATS)
def test_log_normal(streams: Streams, dtype: torch.dtype) -> None:
    check(streams, dtype, lambda x, g: x.log_normal_(0.5, 0.75, generator=g), "rs_log_normal", 0.5, 0.75)


@pytest.mark.parametrize("dtype", FLOATS)
def test_exponential(streams: Streams, dtype: torch.dtype) -> None:
    check(streams, dtype, lambda x, g: x.exponential_(1.7, generator=g), "rs_exponential", 1.7)


@pytest.mark.parametrize("dtype", FLOATS)
def test_cauchy(streams: Streams, dtype: torch.dtype) -> None:
    check(streams, dtype, lambda x, g: x.cauchy_(0.0, 2.5, generator=g), "rs_cauchy", 0.0, 2.5)


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS[1:]])
def test_geometric(streams: Streams, dtype: torch.dtype) -> None:
    check(streams, dtype, lambda x, g: x.geometric_(0.3, generator=g), "rs_geometric", 0.3)


@pytest.mark.parametrize("dtype", DTYPES[:NUMERIC])
@pytest.mark.parametrize("p", [0.0, 1e-9, 0.3, 0.5, 1.0])
@pytest.mark.usefixtures("bernoulli_from_engine")
def test_bernoulli(streams: Streams, dtype: torch.dtype, p: float) -> None:
    check(streams, dtype, lambda x, g: x.bernoulli_(p, generator=g), "rs_bernoulli", p)


@pytest.mark.parametrize("dtype", DTYPES[:NUMERIC])
def test_random_without_bounds(streams: Streams, dtype: torch.dtype) -> None:
    check(streams, dtype, lambda x, g: x.random_(generator=g), "rs_random")


@pytest.mark.parametrize("dtype", [torch.int64, torch.float32, torch.float64, torch.bfloat16])
def test_random_full_range(streams: Streams, dtype: torch.dtype) -> None:
    check(streams, dtype, lambda x, g: x.random_(-(2**63), None, generator=g), "rs_random_full64")


@pytest.mark.parametrize("dtype", DTYPES)
def test_random_small_range(streams: Streams, dtype: torch.dtype) -> None:
    low, high = (0, 2) if dtype == torch.bool else (3, 100)
    check(streams, dtype, lambda x, g: x.random_(low, high, generator=g), "rs_random_from_to", low, high - low)


@pytest.mark.parametrize("dtype", [torch.int64, torch.float64])
@pytest.mark.parametrize("width", [1, 2**16 + 1, 2**28 - 1, 2**28, 2**31 + 11, 2**32 - 1, 2**32, 2**40 + 7, 2**63 - 1])
def test_random_at_thresholds(streams: Streams, dtype: torch.dtype, width: int) -> None:
    low = -5 if width < 2**62 else 0
    if dtype == torch.float64 and width > 2**53:
        pytest.skip("PyTorch narrows ranges that float64 cannot represent")
    check(streams, dtype, lambda x, g: x.random_(low, low + width, generator=g), "rs_random_from_to", low, width)


def test_remainder_of_a_million_words(streams: Streams) -> None:
    for width in (3, 1000, 2**28 - 1):
        check(
            streams, torch.int64, lambda x, g, w=width: x.random_(0, w, generator=g), "rs_random_from_to", 0, width,
            seeds=(3,), sizes=LARGE,
        )  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", ["rs_bernoulli_f32", "rs_bernoulli_f64"])
def test_bernoulli_of_probabilities(streams: Streams, name: str, dtype: torch.dtype) -> None:
    kind = torch.float64 if name.endswith("f64") else torch.float32
    for n in SIZES:
        p = torch.rand(n, dtype=kind, generator=torch.Generator().manual_seed(n))
        state, generator = streams.generator(11), torch.Generator().manual_seed(11)
        expected = torch.empty(n, dtype=dtype).bernoulli_(p, generator=generator)
        assert_same(streams.fill(name, state, dtype, n, p.data_ptr()), expected)
        assert torch.equal(streams.get_state(state), generator.get_state())


@pytest.mark.parametrize("n", [0, 1, 2, 15, 256, 257, 258, 1003, 100_003])
def test_randperm(streams: Streams, n: int) -> None:
    for seed in SEEDS:
        state, generator = streams.generator(seed), torch.Generator().manual_seed(seed)
        out = torch.empty(n, dtype=torch.int64)
        streams.rs_randperm(state, out.data_ptr(), n)
        assert torch.equal(out, torch.randperm(n, generator=generator))
        assert torch.equal(streams.get_state(state), generator.get_state())


def test_next_values_continue_the_fills(streams: Streams) -> None:
    state, generator = streams.generator(5), torch.Generator().manual_seed(5)
    for _ in range(700):
        assert streams.rs_next_u24(state) == torch.rand(1, generator=generator).item()
        assert streams.rs_next_u53(state) == torch.rand(1, dtype=torch.float64, generator=generator).item()
        expected = torch.randn(1, dtype=torch.float64, generator=generator)
        assert_same(torch.tensor([streams.rs_next_normal(state)], dtype=torch.float64), expected)
        word = torch.empty(1, dtype=torch.int32).random_(generator=generator).item()
        assert streams.rs_random32(state) & 0x7FFFFFFF == word


def test_fill_does_not_depend_on_blocks(streams: Streams) -> None:
    whole, cut = streams.generator(9), streams.generator(9)
    expected = streams.fill("rs_normal_serial", whole, torch.float64, 1000, 0.0, 1.0)
    parts = [streams.fill("rs_normal_serial", cut, torch.float64, n, 0.0, 1.0) for n in (1, 2, 255, 3, 739)]
    assert torch.equal(torch.cat(parts), expected)
    assert torch.equal(streams.get_state(cut), streams.get_state(whole))


@pytest.mark.parametrize("drawn", [0, 1, 2, 623, 624, 625, 1248, 5001])
@pytest.mark.parametrize("normals", [0, 1, 2, 3])
def test_state_travels_both_ways(streams: Streams, drawn: int, normals: int) -> None:
    state, generator = streams.generator(2**40 + 1), torch.Generator().manual_seed(2**40 + 1)
    torch.rand(drawn, generator=generator)
    streams.fill("rs_uniform", state, torch.float32, drawn, 0.0, 1.0)
    torch.randn(normals, generator=generator)
    streams.fill("rs_normal", state, torch.float32, normals, 0.0, 1.0)
    assert_same(streams.get_state(state)[:5016], generator.get_state()[:5016])

    theirs, ours = generator.get_state(), streams.get_state(state)
    fresh_state, fresh_generator = streams.generator(0), torch.Generator()
    assert streams.rs_set_state(fresh_state, theirs.data_ptr(), len(theirs)) == 0
    assert torch.equal(streams.get_state(fresh_state), theirs)
    fresh_generator.set_state(ours)
    assert fresh_generator.initial_seed() == 2**40 + 1
    for n in (1, 3, 700):
        expected = torch.randn(n, generator=generator)
        assert_same(streams.fill("rs_normal", fresh_state, torch.float32, n, 0.0, 1.0), expected)
        assert_same(torch.randn(n, generator=fresh_generator), expected)


def test_invalid_states_are_refused_and_change_nothing(streams: Streams) -> None:
    state = streams.generator(1)
    good = streams.get_state(state)
    streams.rs_random32(state)
    before = streams.get_state(state)
    assert streams.rs_set_state(state, good.data_ptr(), 100) == 1
    for offset, value in [(8, 0), (9, 0xFF), (12, 0), (16, 7), (23, 1), (28, 1), (5015, 1)]:
        bad = good.clone()
        bad[offset] = value
        assert streams.rs_set_state(state, bad.data_ptr(), len(bad)) == 2, offset
    assert torch.equal(streams.get_state(state), before)


def test_engine_matches_numpy(streams: Streams) -> None:
    words = np.frombuffer(np.random.RandomState(123).bytes(4 * 2000), dtype="<u4")
    state = streams.generator(123)
    assert [streams.rs_random32(state) for _ in range(1998)] == words[:1998].tolist()
    assert streams.rs_random64(state) == (int(words[1998]) << 32) + int(words[1999])


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        (torch.float16, 0, 5000), (torch.float16, -5000, 5000), (torch.float16, 2049, 2060), (torch.float16, 0, 65504),
        (torch.bfloat16, 0, 1000), (torch.bfloat16, 257, 300), (torch.bfloat16, -301, 300), (torch.float32, 0, 2**28),
        (torch.float32, -(2**24) - 1, 5), (torch.float32, 0, 2**25 + 3), (torch.float64, 0, 2**60),
        (torch.float64, 2**53 + 1, 2**53 + 9), (torch.int64, 0, 2**60),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:to - 1 is out of bounds", "ignore:from is out of bounds")
def test_bounds_that_the_dtype_cannot_hold(streams: Streams, dtype: torch.dtype, low: int, high: int) -> None:
    start, end = i64(low), i64(high)
    streams.rs_narrow_range(DTYPES.index(dtype), ctypes.byref(start), ctypes.byref(end))
    check(
        streams, dtype, lambda x, g: x.random_(low, high, generator=g), "rs_random_from_to", start.value,
        end.value - start.value,
    )  # fmt: skip


GEOMETRIES: dict[str, Callable[[], torch.Tensor]] = {
    "contiguous": lambda: torch.zeros(20, 30),
    "transposed": lambda: torch.zeros(20, 30).t(),
    "transposed, below 16": lambda: torch.zeros(3, 4).t(),
    "every other": lambda: torch.zeros(1000)[::2],
    "every other column": lambda: torch.zeros(20, 30)[:, ::2],
    "some rows": lambda: torch.zeros(20, 30)[3:9],
    "some columns": lambda: torch.zeros(20, 30)[:, 3:9],
    "permuted": lambda: torch.zeros(4, 5, 6).permute(2, 0, 1),
    "permuted and sliced": lambda: torch.zeros(8, 9, 10).permute(1, 2, 0)[::2, 1:, ::3],
    "channels last": lambda: torch.zeros(2, 3, 4, 5).to(memory_format=torch.channels_last),
    "sizes of one": lambda: torch.zeros(1, 30, 1, 4).permute(3, 2, 1, 0),
    "overlapping": lambda: torch.zeros(100).unfold(0, 4, 2),
    "zero-dimensional": lambda: torch.zeros(()),
    "empty": lambda: torch.zeros(0, 3).t(),
}
FILLS: list[tuple[Fill, Callable[[torch.Tensor], object]]] = [
    (Fill(0, -1.0, 1.0), lambda x: x.uniform_(-1, 1)),
    (Fill(1, 0.0, 3.0), lambda x: x.normal_(0, 3)),
    (Fill(2, 0.5, 0.75), lambda x: x.log_normal_(0.5, 0.75)),
    (Fill(3, 0.0, 2.0), lambda x: x.cauchy_(0, 2)),
    (Fill(4, 1.5), lambda x: x.exponential_(1.5)),
    (Fill(5, 0.3), lambda x: x.geometric_(0.3)),
    (Fill(7), lambda x: x.random_()),
    (Fill(8, 0, 0, -3, 50), lambda x: x.random_(-3, 47)),
    (Fill(9), lambda x: x.random_(-(2**63), None)),
]


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_iteration_order(streams: Streams, geometry: str) -> None:
    make = GEOMETRIES[geometry]
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        for fill, theirs in FILLS:
            expected, ours = (strided_like(make(), dtype) for _ in range(2))
            torch.manual_seed(5)
            state = streams.generator(5)
            theirs(expected)
            streams.fill_tensor(state, fill, ours)
            assert_same(ours.contiguous().view(-1), expected.contiguous().view(-1))
            assert torch.equal(streams.get_state(state)[:5016], torch.get_rng_state()[:5016])


def strided_like(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """A tensor of zeros with x's strides, gaps and overlaps, in another dtype."""
    extent = 1 + sum((size - 1) * stride for size, stride in zip(x.shape, x.stride(), strict=True) if size)
    return torch.zeros(extent, dtype=dtype).as_strided(x.shape, x.stride())


@pytest.mark.parametrize("geometry", [name for name in GEOMETRIES if name != "overlapping"])
@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_bernoulli_follows_the_strides_of_self(streams: Streams, geometry: str, kind: torch.dtype) -> None:
    x = GEOMETRIES[geometry]()
    draws = torch.Generator().manual_seed(1)
    for p in (
        torch.rand(x.shape, dtype=kind, generator=draws),
        torch.rand(x.shape[::-1], dtype=kind, generator=draws).permute(tuple(reversed(range(x.dim())))),
        torch.rand(x.shape[-1:], dtype=kind, generator=draws),
    ):
        expected, ours = strided_like(x, torch.int64), strided_like(x, torch.int64)
        state = streams.generator(5)
        expected.bernoulli_(p, generator=(generator := torch.Generator().manual_seed(5)))
        p = p.expand(x.shape)
        streams.rs_bernoulli_tensor(
            state, DTYPES.index(ours.dtype), ours.data_ptr(), DTYPES.index(kind), p.data_ptr(), x.dim(),
            (i64 * 64)(*x.shape), (i64 * 64)(*ours.stride()), (i64 * 64)(*p.stride()),
        )  # fmt: skip
        assert torch.equal(ours, expected)
        assert torch.equal(streams.get_state(state), generator.get_state())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("n", [1, 2, 50, 20_000])
def test_multinomial_with_replacement(streams: Streams, dtype: torch.dtype, n: int) -> None:
    p = torch.rand(3, n, dtype=dtype, generator=torch.Generator().manual_seed(n))
    p[:, n // 2 + 1 :: 7] = 0
    samples = 3000
    state, generator = streams.generator(5), torch.Generator().manual_seed(5)
    out, scratch = torch.empty(3, samples, dtype=torch.int64), torch.empty(n, dtype=dtype)
    draw = streams.rs_multinomial_f32 if dtype == torch.float32 else streams.rs_multinomial_f64
    for row in range(3):
        assert draw(state, p[row].data_ptr(), n, scratch.data_ptr(), out[row].data_ptr(), samples) == 0
    assert torch.equal(out, torch.multinomial(p, samples, replacement=True, generator=generator))
    assert torch.equal(streams.get_state(state), generator.get_state())


@pytest.mark.parametrize(
    ("weights", "status"), [((1.0, -1.0), 1), ((1.0, float("nan")), 1), ((float("inf"),), 2), ((0.0, 0.0), 3)]
)
def test_multinomial_refuses_what_is_no_distribution(streams: Streams, weights: tuple[float, ...], status: int) -> None:
    p, scratch, out = torch.tensor(weights), torch.empty(len(weights)), torch.empty(2, dtype=torch.int64)
    state = streams.generator(5)
    before = streams.get_state(state)
    assert streams.rs_multinomial_f32(state, p.data_ptr(), len(p), scratch.data_ptr(), out.data_ptr(), 2) == status
    assert torch.equal(streams.get_state(state), before)
    with pytest.raises(RuntimeError, match="invalid multinomial distribution"):
        torch.multinomial(p, 2, replacement=True)


@pytest.mark.parametrize("replacement", [False, True])
def test_multinomial_by_exponentials(streams: Streams, replacement: bool) -> None:
    p = torch.rand(4, 50, generator=torch.Generator().manual_seed(1))
    for samples in (1,) if replacement else (1, 7, 50):
        state, generator = streams.generator(5), torch.Generator().manual_seed(5)
        q = streams.fill("rs_exponential", state, torch.float32, 200, 1.0).view(4, 50)
        expected = torch.multinomial(p, samples, replacement, generator=generator)
        assert torch.equal((p / q).topk(samples, dim=-1).indices, expected)
        assert torch.equal(streams.get_state(state), generator.get_state())


@pytest.mark.usefixtures("bernoulli_from_engine")
@pytest.mark.parametrize("geometry", ["contiguous", "transposed", "channels last", "every other"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_dropout(streams: Streams, dtype: torch.dtype, geometry: str) -> None:
    x = GEOMETRIES[geometry]().to(dtype) + 1.25
    state = streams.generator(5)
    torch.manual_seed(5)
    noise = torch.empty_like(x)
    streams.fill_tensor(state, Fill(6, 1 - 0.3), noise)
    assert torch.equal(torch.nn.functional.dropout(x, 0.3), x * noise.div_(1 - 0.3))
    assert torch.equal(streams.get_state(state), torch.get_rng_state())


def test_loader_seeds(streams: Streams) -> None:
    """iter(DataLoader) draws the workers' base seed first, the first batch then the shuffle's own seed."""
    data = list(range(20))
    torch.manual_seed(5)
    batch = next(iter(torch.utils.data.DataLoader(data, batch_size=20, shuffle=True)))
    state = streams.generator(5)
    _, shuffle_seed = streams.fill("rs_random", state, torch.int64, 2).tolist()
    out = torch.empty(20, dtype=torch.int64)
    streams.rs_randperm(streams.generator(shuffle_seed), out.data_ptr(), 20)
    assert torch.equal(batch, out)
    assert torch.equal(streams.get_state(state), torch.get_rng_state())
