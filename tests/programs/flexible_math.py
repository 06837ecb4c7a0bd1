"""Learning with the parts: a polynomial by hand and by nn, indexing, einsum, FFT denoising, linear algebra, numerics, channels last, meta tensors, a tour of printing."""

import math

import numpy as np
import torch
import torch.nn as nn


def polynomial():
    x = torch.linspace(-math.pi, math.pi, 500, dtype=torch.float64)
    y = torch.sin(x)
    a, b, c, d = (torch.randn((), dtype=torch.float64, requires_grad=True) for _ in range(4))
    for t in range(200):
        loss = (a + b * x + c * x**2 + d * x**3 - y).pow(2).sum()
        loss.backward()
        with torch.no_grad():
            for w in (a, b, c, d):
                w -= 1e-6 * w.grad
                w.grad = None
    print(f"{loss.item():.4f} {a.item():.4f} {b.item():.4f} {c.item():.4f} {d.item():.4f}")
    xx = x.unsqueeze(-1).pow(torch.tensor([1, 2, 3])).float()
    model = nn.Sequential(nn.Linear(3, 1), nn.Flatten(0, 1))
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    loss_fn = nn.MSELoss(reduction="sum")
    for t in range(100):
        loss = loss_fn(model(xx), y.float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{loss.item():.3f}", model[0].weight.shape)
    solution = torch.linalg.lstsq(torch.cat([torch.ones(500, 1, dtype=torch.float64), x[:, None] ** torch.arange(1, 4)], 1), y[:, None]).solution
    print(solution.flatten().round(decimals=6).abs())


def tensors():
    data = [[1, 2], [3, 4]]
    x = torch.tensor(data)
    print(x, torch.from_numpy(np.array(data)), torch.ones_like(x), torch.rand_like(x, dtype=torch.float), sep="\n")
    t = torch.ones(4, 4)
    t[:, 1] = 0
    print(t, t.device, t.dtype, torch.cat([t, t, t], dim=1).shape, (t @ t.T).sum(), t.add_(5)[..., -1])
    n = np.ones(5)
    shared = torch.from_numpy(n)
    np.add(n, 1, out=n)
    print(shared, t.numpy().shape, x.T, x[None, ..., None].shape, x.bool(), x.new_full((2,), 7), torch.empty(0))
    print(
        torch.arange(24).view(2, 3, 4)[:, [0, 2], 1::2],
        torch.tensor([1e-8, 1.0, 1e8]),
        torch.tensor([1 + 2j, -1j]),
        torch.tensor(float("nan")),
        torch.full((3,), float("inf")),
        sep="\n",
    )
    print(
        torch.randn(1200, 3).shape,
        torch.zeros(2000),
        torch.tensor([0.1, 0.25]).half(),
        torch.tensor(3, dtype=torch.uint8),
        torch.tensor([], dtype=torch.int64),
        sep="\n",
    )
    print(torch.eye(3, requires_grad=True) * 2, nn.Parameter(torch.ones(2)), torch.ones(2, device="meta"), sep="\n")
    named = torch.finfo(torch.bfloat16), torch.iinfo(torch.int16), torch.promote_types(torch.int32, torch.float16), torch.result_type(x, 1.0)
    print(*named, torch.Size([2, 3]), torch.device("cpu"), torch.float32, torch.strided, torch.channels_last, sep="\n")


def numerics():
    g = torch.Generator().manual_seed(17)
    signal = torch.sin(torch.linspace(0, 20 * math.pi, 512))
    noisy = signal + 0.5 * torch.randn(512, generator=g)
    spectrum = torch.fft.rfft(noisy)
    spectrum[spectrum.abs() < 40] = 0
    print(f"denoised {(torch.fft.irfft(spectrum) - signal).square().mean().item():.5f} from {(noisy - signal).square().mean().item():.5f}")
    A = torch.randn(6, 6, generator=g, dtype=torch.float64)
    S = A @ A.mT + torch.eye(6)
    values, vectors = torch.linalg.eigh(S)
    print(
        torch.allclose(vectors @ torch.diag(values) @ vectors.mT, S),
        torch.linalg.cond(S).round(decimals=3),
        torch.linalg.matrix_rank(A[:, :3]).item(),
    )
    L = torch.linalg.cholesky(S)
    print(torch.allclose(torch.cholesky_solve(A, L), torch.linalg.solve(S, A)), torch.linalg.slogdet(S).logabsdet, torch.linalg.norm(A, "nuc"))
    U, s, Vh = torch.linalg.svd(A[:, :4], full_matrices=False)
    print(torch.dist(U * s @ Vh, A[:, :4]).item() < 1e-12, torch.einsum("ij,jk,ik->i", A, S, A).sum(), torch.tensordot(A, S, dims=2))
    x = torch.randn(2, 3, 4, 4, generator=g).to(memory_format=torch.channels_last)
    conv = nn.Conv2d(3, 5, 3).to(memory_format=torch.channels_last)
    out = conv(x)
    print(x.stride(), out.is_contiguous(memory_format=torch.channels_last), out.shape)
    values, counts = torch.unique(torch.tensor([3, 1, 1, 2, 3, 3]), return_counts=True)
    print(values, counts, torch.bucketize(torch.tensor([0.1, 5.0]), torch.tensor([0.0, 1.0, 6.0])), torch.histc(torch.arange(10.0), bins=4))
    scattered = torch.zeros(3, 4).scatter_reduce(0, torch.tensor([[0, 1, 2, 0], [2, 2, 1, 0]]), torch.ones(2, 4), reduce="sum")
    print(
        scattered,
        torch.nn.functional.one_hot(torch.tensor([0, 2])),
        torch.cdist(A[:2].float(), A[2:4].float()),
        torch.special.erfinv(torch.tensor(0.5)),
    )
    try:
        torch.ones(2, 3) @ torch.ones(2, 3)
    except RuntimeError as error:
        print(error)
    try:
        x = torch.ones(3, requires_grad=True)
        y = x.exp()
        y += 1
        y.sum().backward()
    except RuntimeError as error:
        print(str(error)[:80])
    print(torch.allclose(torch.logsumexp(A, 1), A.exp().sum(1).log()), torch.trapezoid(torch.arange(5.0)), torch.gradient(torch.arange(5.0) ** 2)[0])


def main():
    torch.manual_seed(17)
    polynomial()
    tensors()
    numerics()


if __name__ == "__main__":
    main()
