"""Random numbers on CUDA: published vectors of Philox, PyTorch's grid and streams, distributions; run by test_families.py."""

from __future__ import annotations

import os
import math

import tensorrt_lite as torch
from device_checks import raises

# Words of Philox4x32-10 from Random123's known answers: counter and key of zeros.
ZEROS = (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)
_M = 0xFFFFFFFF


def philox(counter: tuple[int, ...], key: tuple[int, ...]) -> tuple[int, ...]:
    """Salmon et al. 2011, in Python."""
    k0, k1 = key
    for _ in range(10):
        a, b = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = ((b >> 32) ^ counter[1] ^ k0, b & _M, (a >> 32) ^ counter[3] ^ k1, a & _M)
        k0, k1 = (k0 + 0x9E3779B9) & _M, (k1 + 0xBB67AE85) & _M
    return counter


def words(n: int, seed: int, offset: int, grid: int) -> list[int]:
    """The word of each of n elements, drawn by `grid` threads, four a call."""
    out = [0] * n
    for thread in range(min(grid, n)):
        for call, first in enumerate(range(thread, n, 4 * grid)):
            block = offset // 4 + call
            drawn = philox((block & _M, block >> 32, thread, 0), (seed & _M, seed >> 32))
            for k, word in enumerate(drawn):
                if first + k * grid < n:
                    out[first + k * grid] = word
    return out


def unit(word: int) -> float:
    """In (0, 1], as float32 computes it."""
    scale = torch.tensor(2.3283064e-10)
    return (torch.tensor(float(word)).to(torch.float32) * scale + scale / 2).item()


def check_known_answers() -> None:
    """The published vectors, and the device's words against them."""
    assert philox((0, 0, 0, 0), (0, 0)) == ZEROS
    assert philox((_M,) * 4, (_M,) * 2) == (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)
    assert philox((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0)) == (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)
    g = torch.Generator(device="cuda").manual_seed(0)
    x = torch.empty(1025, dtype=torch.int32, device="cuda").random_(0, 1 << 27, generator=g)
    assert x[0].item() == ZEROS[0] % (1 << 27)


def check_streams(order: str) -> None:
    """Uniform numbers element by element; the offset moves on by whole calls of the busiest thread."""
    torch.cuda.manual_seed_all(7 << 32 | 42)
    blocks = torch.cuda.get_device_properties(0).multi_processor_count * (torch.cuda.get_device_properties(0).max_threads_per_multi_processor // 256)
    offset = 0
    for n in (1, 31, 3000, 256 * blocks * 4 + 5) if order == "forward" else (3000,):
        grid = min((n + 255) // 256, blocks) * 256
        drawn, expected = torch.rand(n, device="cuda").cpu(), words(n, 7 << 32 | 42, offset, grid)
        for i in {0, n // 2, n - 1, min(n - 1, grid)}:
            assert drawn[i].item() == (unit(expected[i]) if unit(expected[i]) < 1 else 0.0), (n, i)
        offset += ((n - 1) // (grid * 4) + 1) * 4
        state = torch.cuda.get_rng_state()
        assert int.from_bytes(bytes(state.tolist()[8:]), "little") == offset
    # normal: pairs of the same words
    expected = words(4 * 256, 5, 0, 256)
    z = torch.randn(4 * 256, device="cuda", generator=torch.Generator("cuda").manual_seed(5)).cpu()
    for i in (0, 100, 255):
        u, v = unit(expected[i]), expected[i + 256] * 2.0**-32 * 2 * math.pi
        assert abs(z[i].item() - math.sqrt(-2 * math.log(u)) * math.sin(v)) < 1e-4, i


def check_distributions() -> None:
    """Means and deviations, bounds, types."""
    torch.cuda.manual_seed_all(1)
    n = 20_000
    x = torch.rand(n, device="cuda").cpu()
    assert 0 <= x.min() and x.max() < 1 and abs(x.mean() - 0.5) < 0.01
    for dtype in (torch.float32, torch.float64, torch.float16):
        x = torch.empty(n, dtype=dtype, device="cuda").normal_(2, 3).cpu().double()
        assert abs(x.mean() - 2) < 0.1 and abs(x.std() - 3) < 0.1
    assert abs(torch.empty(n, device="cuda").exponential_(4).cpu().mean() - 0.25) < 0.01
    assert abs(torch.empty(n, device="cuda").bernoulli_(0.3).cpu().mean() - 0.3) < 0.02
    p = torch.linspace(0, 1, n)
    assert abs(torch.bernoulli(p.cuda()).cpu().mean() - 0.5) < 0.02
    assert abs(torch.empty(n, device="cuda").geometric_(0.5).cpu().mean() - 2) < 0.1
    x = torch.randint(-5, 6, (n,), device="cuda").cpu()
    assert x.dtype == torch.int64 and x.min() == -5 and x.max() == 5 and abs(x.double().mean()) < 0.1
    x = torch.randint(0, 1 << 40, (n,), device="cuda").cpu()
    assert abs(x.double().mean() / (1 << 39) - 1) < 0.05
    assert torch.empty(n, dtype=torch.uint8, device="cuda").random_().cpu().float().mean().sub(127.5).abs() < 2
    strided = torch.zeros(10, 6, device="cuda")[:, ::2].uniform_(1, 2).cpu()
    assert 1 <= strided.min() and strided.max() < 2
    assert torch.randn(3, 4, dtype=torch.complex64, device="cuda").shape == (3, 4)
    for dtype in (torch.int64, torch.float32):
        order = torch.randperm(500, device="cuda", dtype=dtype).cpu()
        assert order.dtype == dtype and sorted(order.tolist()) == list(range(500)) and order.tolist() != list(range(500))
    assert torch.randperm(0, device="cuda").is_cuda
    a, b = torch.normal(torch.zeros(5).cuda(), 1.0), torch.rand_like(torch.zeros(5).cuda())
    assert a.is_cuda and b.is_cuda


def check_dropout() -> None:
    """Zeros and scaled elements, the same mask in the gradient; the stream moves on."""
    F = torch.nn.functional
    for dtype in (torch.float32, torch.float16):
        x = torch.ones(100, 50, dtype=dtype).cuda().requires_grad_()
        y = F.dropout(x, 0.25)
        y.sum().backward()
        values = sorted(set(y.detach().cpu().flatten().tolist()))
        assert len(values) == 2 and values[0] == 0 and abs(values[1] - 4 / 3) < 1e-3
        assert torch.equal(x.grad.cpu(), y.detach().cpu()) and abs((y == 0).cpu().float().mean() - 0.25) < 0.03
        assert not torch.equal(F.dropout(x, 0.25).cpu(), y.cpu())
    assert F.dropout(x, 0.5, training=False) is x and not F.dropout(x, 1.0).any()
    assert F.alpha_dropout(torch.randn(50).cuda(), 0.5).is_cuda and F.dropout2d(torch.ones(2, 3, 4, 4).cuda()).is_cuda


def stream(seed: int, thread: int, offset: int, count: int) -> list[int]:
    """The first words of a thread."""
    return [w for call in range((count + 3) // 4) for w in philox((offset // 4 + call, 0, thread, 0), (seed & _M, seed >> 32))][:count]


def offset_now() -> int:
    """How far the default generator is."""
    return int.from_bytes(bytes(torch.cuda.get_rng_state().tolist()[8:]), "little")


def check_mask_order() -> None:
    """Which word decides which element in dropout: neighbours of a thread, as many as 16 bytes hold and the size allows."""
    F = torch.nn.functional
    for n, dtype, vector in ((400, torch.float32, 4), (800, torch.float16, 8), (402, torch.float32, 2), (401, torch.float32, 1), (200, torch.float64, 2)):
        torch.cuda.manual_seed_all(3)
        kept = (F.dropout(torch.ones(n, dtype=dtype, device="cuda"), 0.4) != 0).cpu().tolist()
        grid = min((n + 255) // 256, 10**6) * 256
        for i in range(0, n, 37):
            thread, place = (i // vector, i % vector) if vector > 1 else (i % grid, i // grid)
            assert kept[i] == (unit(stream(3, thread, 0, 8)[place]) < torch.tensor(0.6).item()), (n, dtype, i)
        assert offset_now() == 4
    # a view that begins in the middle of 16 bytes; in place the words go as in fills
    torch.cuda.manual_seed_all(3)
    kept = (F.dropout(torch.ones(402, device="cuda")[2:], 0.4) != 0).cpu().tolist()
    assert kept[:6] == [unit(stream(3, i // 2, 0, 4)[i % 2]) < torch.tensor(0.6).item() for i in range(6)]
    torch.cuda.manual_seed_all(3)
    kept = (F.dropout(torch.ones(400, device="cuda"), 0.4, inplace=True) != 0).cpu().tolist()
    assert kept[:300:50] == [unit(w) < torch.tensor(0.6).item() for w in words(400, 3, 0, 512)[:300:50]]
    x = torch.ones(2, 8, 3, 3, device="cuda").to(memory_format=torch.channels_last).requires_grad_()
    F.dropout(x, 0.5).sum().backward()
    assert set(x.grad.cpu().flatten().tolist()) == {0.0, 2.0}
    assert set(F.dropout(torch.ones(40, dtype=torch.float64, device="cuda"), 0.5, inplace=True).tolist()) == {0.0, 2.0}


def check_probabilities() -> None:
    """bernoulli by a tensor: a thread draws for four neighbours, and the stream moves on by twelve words."""
    p = torch.linspace(0.2, 0.8, 41)
    for dtype in (torch.float32, torch.float64, torch.float16):
        torch.cuda.manual_seed_all(9)
        drawn = torch.bernoulli(p.to(dtype).cuda()).tolist()
        assert drawn == [float(unit(stream(9, i // 4, 0, 4)[i % 4]) <= q) for i, q in enumerate(p.to(dtype).tolist())] and offset_now() == 12
    torch.cuda.manual_seed_all(9)
    assert torch.empty(41, dtype=torch.int32, device="cuda").bernoulli_(p.cuda()).tolist() == [int(unit(stream(9, i // 4, 0, 4)[i % 4]) <= q) for i, q in enumerate(p.tolist())]
    assert torch.bernoulli(torch.ones(6, 4).cuda().t()).cpu().sum() == 24 and torch.zeros(4, 6).cuda().t().bernoulli_(torch.tensor(1.0).cuda()).cpu().sum() == 24


def permutation(n: int, seed: int) -> tuple[list[int], bool]:
    """randperm as PyTorch makes it on CUDA, and whether keys were equal."""
    bits = math.ceil(math.log2(n - (6.0 * n * n + 1) / (12 * math.log(0.9))))
    word = 32 if bits <= 32 else 64
    card = torch.cuda.get_device_properties(0)
    keys, grid = [], 256 * min((n + 255) // 256, card.multi_processor_count * (card.max_threads_per_multi_processor // 256))
    for i in range(n):  # 64-bit numbers, two a call
        call, place = divmod(i // grid, 2)
        w = stream(seed, i % grid, 4 * call, 4)[2 * place :]
        keys.append((((w[0] << 32 | w[1]) % ((1 << word) - 1)) - (1 << word - 1)) & ((1 << bits) - 1))
    order = sorted(range(n), key=keys.__getitem__)
    offset, i, equal = 4 * ((n - 1) // (grid * 2) + 1), 0, False
    while i < n:
        size = 1
        while i + size < n and keys[order[i + size]] == keys[order[i]]:
            size += 1
        drawn = stream(seed, i, offset, size)
        for last in range(size - 1, 0, -1):
            other = i + drawn[size - 1 - last] % (last + 1)
            order[i + last], order[other], equal = order[other], order[i + last], True
        i += size
    return order, equal


def check_permutations() -> None:
    """randperm element by element, with and without equal keys, of more elements than 32-bit keys are made for."""
    for n, seed in ((1, 1), (2, 1), (300, 4), (32_000, 5), *EQUAL_KEYS):
        torch.cuda.manual_seed_all(seed)
        expected, equal = permutation(n, seed)
        assert torch.randperm(n, device="cuda").tolist() == expected, (n, seed)
        assert equal == ((n, seed) in EQUAL_KEYS)


# (n, seed) where keys meet, found by trying
EQUAL_KEYS = ((60, 16), (300, 12))


def check_sampling() -> None:
    """multinomial with replacement by running sums; without, no index twice; zero weights are never drawn."""
    torch.cuda.manual_seed_all(6)
    weights = torch.tensor([[0.0, 1.0, 2.0, 0.0, 5.0], [4.0, 0.0, 0.0, 4.0, 0.0]])
    drawn = torch.multinomial(weights.cuda(), 300, replacement=True).tolist()
    for row in range(2):
        sums = (weights[row] / weights[row].sum()).cumsum(0).tolist()
        for k in (0, 1, 127, 128, 299):
            number = unit(stream(6, row * 384 + k, 0, 4)[0])
            expected = next(i for i, total in enumerate(sums) if total >= number)
            assert drawn[row][k] == expected, (row, k)
    assert offset_now() == 4
    assert set(drawn[0]) == {1, 2, 4} and set(drawn[1]) == {0, 3}
    assert sorted(torch.multinomial(torch.rand(9).cuda() + 0.1, 9).tolist()) == list(range(9))
    assert torch.multinomial(torch.rand(3, 4).cuda() + 0.1, 5, True).shape == (3, 5)


def check_counts_and_slopes() -> None:
    """Poisson counts of every size; rrelu in training and its gradient."""
    torch.cuda.manual_seed_all(2)
    for rate, dtype in ((0.3, torch.float32), (7.0, torch.float64), (30.0, torch.float32), (900.0, torch.float64)):
        x = torch.poisson(torch.full((20_000,), rate, dtype=dtype, device="cuda")).cpu().double()
        assert torch.equal(x, x.round()) and x.min() >= 0
        assert abs(x.mean() - rate) < 5 * math.sqrt(rate / 20_000) and abs(x.var() / rate - 1) < 0.06, rate
    x = torch.poisson(torch.tensor([0.0, -1.0, float("nan")], device="cuda")).cpu()
    assert x[0] == 0 and x[1:].isnan().all() and not torch.equal(torch.poisson(torch.full((50,), 9.0).cuda()).cpu(), torch.poisson(torch.full((50,), 9.0).cuda()).cpu())
    for shape, dtype in ((0.2, torch.float64), (1.0, torch.float32), (6.0, torch.float64)):
        x = torch._standard_gamma(torch.full((20_000,), shape, dtype=dtype, device="cuda")).cpu().double()
        assert x.min() > 0 and abs(x.mean() - shape) < 5 * math.sqrt(shape / 20_000) and abs(x.var() / shape - 1) < 0.15, shape
    x = torch._sample_dirichlet(torch.tensor([[0.5, 1.0, 2.5]], device="cuda").expand(5000, 3)).cpu().double()
    assert torch.allclose(x.sum(1), torch.ones(5000, dtype=torch.float64), atol=1e-6) and torch.allclose(x.mean(0) * 4, torch.tensor([0.5, 1.0, 2.5], dtype=torch.float64), atol=0.05)
    assert torch._standard_gamma(torch.tensor([-1.0, float("nan")], device="cuda")).isnan().all()
    shape = torch.tensor([0.3, 2.0, 50.0], device="cuda", requires_grad=True)
    x = torch._standard_gamma(shape)
    (slope,) = torch.autograd.grad(x.sum(), shape)
    assert torch.allclose(slope.cpu(), torch._standard_gamma_grad(shape.detach().cpu(), x.detach().cpu()), rtol=1e-5)
    triple = [torch.tensor(v) for v in ([0.2, 0.5], [2.0, 0.5], [7.0, 1.5])]
    assert torch.allclose(torch._dirichlet_grad(*(v.cuda() for v in triple)).cpu(), torch._dirichlet_grad(*triple), rtol=1e-5)
    F = torch.nn.functional
    for dtype in (torch.float32, torch.float64, torch.float16):
        torch.cuda.manual_seed_all(8)
        x = torch.randn(30, 20).to(dtype).cuda().requires_grad_()
        y = F.rrelu(x, 0.25, 0.5, training=True)
        y.sum().backward()
        slope, value = x.grad.cpu(), x.detach().cpu()
        assert torch.equal((value * slope), y.detach().cpu())
        assert ((slope == 1) == (value > 0)).all() and slope.min() >= 0.25 and slope[value <= 0].max() <= 0.5 and abs(slope[value <= 0].double().mean() - 0.375) < 0.02
        if dtype == torch.float32:
            for i in range(0, 600, 7):
                if value.flatten()[i] <= 0:
                    assert abs(slope.flatten()[i].item() - (unit(words(600, 8, 0, 768)[i]) * 0.25 + 0.25)) < 1e-6
        agreed = F.rrelu(x, 0.25, 0.5).cpu()
        assert torch.allclose(agreed, F.leaky_relu(value, 0.375), rtol=1e-3)
    F.rrelu(x.detach().t(), training=True, inplace=True)


def check_generators() -> None:
    """States, seeds, forks, copies; generators of the other device are refused."""
    torch.manual_seed(11)
    a = torch.rand(5, device="cuda").cpu()
    state = torch.cuda.get_rng_state()
    b = torch.rand(5, device="cuda").cpu()
    torch.cuda.set_rng_state(state)
    assert torch.equal(torch.rand(5, device="cuda").cpu(), b) and not torch.equal(a, b)
    torch.cuda.manual_seed(11)
    assert torch.equal(torch.rand(5, device="cuda").cpu(), a) and torch.cuda.initial_seed() == 11
    g = torch.Generator("cuda").manual_seed(11)
    assert torch.equal(torch.rand(5, device="cuda", generator=g).cpu(), a) and g.device.type == "cuda" and isinstance(g, torch.Generator)
    copied = g.graphsafe_get_state()
    assert torch.equal(torch.rand(5, device="cuda", generator=g).cpu(), torch.rand(5, device="cuda", generator=copied).cpu())
    with torch.random.fork_rng():
        c = torch.rand(5, device="cuda").cpu()
    assert torch.equal(torch.rand(5, device="cuda").cpu(), c)
    assert state.shape == (16,) and len(torch.cuda.get_rng_state_all()) == 1
    raises(RuntimeError, "Expected a 'cuda' device type", torch.rand, 3, device="cuda", generator=torch.Generator())
    raises(RuntimeError, "Expected a 'cpu' device type", torch.rand, 3, generator=g)
    raises(RuntimeError, "normal expects std >= 0.0", torch.empty(3).cuda().normal_, 0, -1)


def check_graphs() -> None:
    """A replay draws the numbers that an eager call would draw there, from the default and a registered generator; late streams too."""
    own = torch.Generator("cuda")

    def draw(x: torch.Tensor) -> list[torch.Tensor]:
        rate = torch.full((9,), 3.0, device="cuda")
        return [
            torch.rand(700, device="cuda"), torch.randn(5, device="cuda", generator=own), torch.nn.functional.dropout(x, 0.5), torch.bernoulli(x.abs().clamp(0, 1)),
            torch.randperm(20, device="cuda"), torch.poisson(rate), torch.nn.functional.rrelu(x, training=True),
            torch.nn.functional.scaled_dot_product_attention(*[x.view(1, 1, 8, 8)] * 3, dropout_p=0.4),
        ]  # fmt: skip

    for mode in ("eager", "late"):
        os.environ["CUEMU_STREAMS"] = mode
        try:
            x = torch.randn(64, device="cuda")
            draw(x)
            expected = []
            for g in (torch.cuda.default_generators[0], own):
                g.manual_seed((1 << 63) + 5)
            for _ in range(3):
                expected.append([t.cpu() for t in draw(x)])
            after = torch.rand(3, device="cuda").cpu()
            graph = torch.cuda.CUDAGraph()
            graph.register_generator_state(own)
            for g in (torch.cuda.default_generators[0], own):
                g.manual_seed((1 << 63) + 5)
            with torch.cuda.graph(graph):
                outputs = draw(x)
                raises(RuntimeError, "cannot be seeded while a CUDA graph records", own.manual_seed, 3)
                raises(RuntimeError, "a CUDA graph that does not know it", torch.rand, 3, device="cuda", generator=torch.Generator("cuda"))
            for numbers in expected:
                graph.replay()
                # clones: late streams' next replay must not overwrite what is read here
                for got, want in zip([t.clone().cpu() for t in outputs], numbers):
                    assert torch.equal(got, want)
            assert torch.equal(torch.rand(3, device="cuda").cpu(), after), "the stream goes on after the last replay"
            torch.manual_seed(4)
            graph.replay()
            first = outputs[0].clone()
            torch.manual_seed(4)
            graph.replay()
            assert torch.equal(first, outputs[0])
        finally:
            os.environ["CUEMU_STREAMS"] = "eager"
    raises(RuntimeError, "a generator of a CUDA device", graph.register_generator_state, torch.Generator())


def check_binomial(order: str) -> None:
    """Means and variances of both algorithms, both halves of probabilities; edges."""
    for count, chance in ((7.0, 0.2), (30.0, 0.9), (500.0, 0.4), (90.0, 0.03)):
        x = torch.binomial(torch.full((20_000,), count).cuda(), torch.full((20_000,), chance).cuda()).cpu().double()
        mean, variance = count * chance, count * chance * (1 - chance)
        assert abs(x.mean().item() - mean) < 5 * (variance / 20_000) ** 0.5 and abs(x.var().item() / variance - 1) < 0.06
        assert x.min() >= 0 and x.max() <= count and torch.equal(x, x.floor())
    found = torch.binomial(torch.tensor([0.0, 5, 5, 5, float("nan")]).cuda(), torch.tensor([0.5, 0, 1, float("nan"), 0.5]).cuda()).cpu()
    assert found[:3].tolist() == [0, 0, 5] and found[3:].isnan().all()
