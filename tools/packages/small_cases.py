"""A few functions or layers of each of some two dozen packages that depend on PyTorch."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tools.packages._cases import case, train


@case("einops")
def _():
    from einops import rearrange, reduce, repeat, einsum, pack, unpack
    from einops.layers.torch import Rearrange, Reduce, EinMix

    x = torch.randn(2, 3, 8, 8)
    p, ps = pack([x.flatten(2), x[..., 0]], "b c *")
    m = nn.Sequential(
        Rearrange("b c (h p) (w q) -> b (h w) (p q c)", p=4, q=4),
        EinMix("b t c -> b t d", weight_shape="c d", bias_shape="d", c=48, d=6),
        Reduce("b t c -> b c", "mean"),
    )
    return [
        rearrange(x, "b c h w -> b (c h w)").sum(1),
        reduce(x, "b c (h 2) (w 2) -> b c h w", "max"),
        repeat(x[0, 0], "h w -> h (w r)", r=2).mean(0),
        einsum(x, x, "b c h w, b d h w -> b c d"),
        p.sum(),
        [u.sum() for u in unpack(p, ps, "b c *")],
        m(x),
    ]


@case("safetensors")
def _():
    import tempfile
    import os
    from safetensors.torch import save_file, load_file, save_model, load_model, save, load

    m = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
    n = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
    with tempfile.TemporaryDirectory() as d:
        save_model(m, os.path.join(d, "a.safetensors"))
        load_model(n, os.path.join(d, "a.safetensors"))
        save_file({"x": torch.arange(5).to(torch.bfloat16), "f8": torch.ones(3).to(torch.float8_e4m3fn)}, os.path.join(d, "b"), metadata={"a": "b"})
        r = load_file(os.path.join(d, "b"))
        from safetensors import safe_open

        with safe_open(os.path.join(d, "a.safetensors"), framework="pt") as f:
            s = f.get_slice("0.weight")[1:, :2]
        return [list(n.state_dict().values()), r["x"].float(), r["f8"].float(), s, load(save({"q": torch.ones(2, dtype=torch.int16)}))["q"]]


@case("torchmetrics")
def _():
    import torchmetrics as tm
    from torchmetrics import MetricCollection

    p = torch.rand(50, 4).softmax(1)
    y = torch.randint(0, 4, (50,))
    mc = MetricCollection(
        {
            "acc": tm.Accuracy(task="multiclass", num_classes=4),
            "f1": tm.F1Score(task="multiclass", num_classes=4, average="macro"),
            "auroc": tm.AUROC(task="multiclass", num_classes=4),
            "ap": tm.AveragePrecision(task="multiclass", num_classes=4),
            "cm": tm.ConfusionMatrix(task="multiclass", num_classes=4),
            "kappa": tm.CohenKappa(task="multiclass", num_classes=4),
            "mcc": tm.MatthewsCorrCoef(task="multiclass", num_classes=4),
            "cal": tm.CalibrationError(task="multiclass", num_classes=4),
        }
    )
    for i in range(0, 50, 10):
        mc.update(p[i : i + 10], y[i : i + 10])
    a, b = torch.randn(30), torch.randn(30)
    img1, img2 = torch.rand(2, 3, 32, 32), torch.rand(2, 3, 32, 32)
    return [
        mc.compute(),
        tm.MeanSquaredError()(a, b),
        tm.PearsonCorrCoef()(a, b),
        tm.SpearmanCorrCoef()(a, b),
        tm.R2Score()(a, b),
        tm.KLDivergence()(p[:25], p[25:]),
        tm.image.PeakSignalNoiseRatio(data_range=1.0)(img1, img2),
        tm.image.StructuralSimilarityIndexMeasure(data_range=1.0)(img1, img2),
        tm.functional.pairwise_cosine_similarity(p[:3], p[3:6]),
        tm.retrieval.RetrievalMAP()(torch.rand(10), torch.randint(0, 2, (10,)), indexes=torch.arange(10) // 5),
        tm.text.Perplexity()(torch.randn(2, 5, 7), torch.randint(0, 7, (2, 5))),
        tm.audio.ScaleInvariantSignalDistortionRatio()(a, b),
    ]


@case("accelerate")
def _():
    from accelerate import Accelerator
    from accelerate.utils import set_seed
    from torch.utils.data import DataLoader, TensorDataset

    set_seed(0)
    acc = Accelerator(cpu=True, gradient_accumulation_steps=2)
    m = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
    opt = torch.optim.AdamW(m.parameters(), lr=1e-2)
    dl = DataLoader(TensorDataset(torch.randn(32, 6), torch.randint(0, 2, (32,))), batch_size=8, shuffle=True)
    sch = torch.optim.lr_scheduler.StepLR(opt, 2)
    m, opt, dl, sch = acc.prepare(m, opt, dl, sch)
    ls = []
    for _ in range(2):
        for x, y in dl:
            with acc.accumulate(m):
                l = F.cross_entropy(m(x), y)
                acc.backward(l)
                acc.clip_grad_norm_(m.parameters(), 1.0)
                opt.step()
                sch.step()
                opt.zero_grad()
                ls.append(l.item())
    import tempfile

    with tempfile.TemporaryDirectory() as d:
        acc.save_state(d)
        acc.load_state(d)
    return ls + [acc.gather_for_metrics(torch.ones(2)), sum(p.sum() for p in acc.unwrap_model(m).parameters())]


@case("lightning-like")
def _():
    from lightning_utilities.core.apply_func import apply_to_collection

    class Mod(nn.Module):
        def __init__(s):
            super().__init__()
            s.l = nn.Linear(4, 2)

        def training_step(s, b):
            return F.cross_entropy(s.l(b["x"]), b["y"])

        def configure_optimizers(s):
            o = torch.optim.SGD(s.parameters(), 0.1)
            return [o], [torch.optim.lr_scheduler.CosineAnnealingLR(o, 5)]

    m = Mod()
    (o,), (s,) = m.configure_optimizers()
    ls = []
    for i in range(5):
        b = apply_to_collection({"x": torch.randn(8, 4), "y": torch.randint(0, 2, (8,))}, torch.Tensor, lambda t: t.to("cpu", non_blocking=True))

        def closure():
            o.zero_grad()
            l = m.training_step(b)
            l.backward()
            return l

        ls.append(o.step(closure).item())
        s.step()
    return ls


@case("peft")
def _():
    from peft import LoraConfig, get_peft_model

    m = nn.Sequential()
    m.add_module("a", nn.Linear(8, 16))
    m.add_module("r", nn.ReLU())
    m.add_module("b", nn.Linear(16, 3))
    pm = get_peft_model(m, LoraConfig(r=2, target_modules=["a"], modules_to_save=["b"]))
    x, y = torch.randn(16, 8), torch.randint(0, 3, (16,))
    ls = train(pm, lambda: F.cross_entropy(pm(x), y), 5, lr=1e-2)[0]
    merged = pm.merge_and_unload()
    return ls + [merged(x[:2])]


@case("kornia")
def _():
    import kornia

    x = torch.rand(1, 3, 24, 24)
    return [
        kornia.filters.gaussian_blur2d(x, (5, 5), (1.0, 1.0)),
        kornia.filters.sobel(x),
        kornia.color.rgb_to_hsv(x),
        kornia.color.rgb_to_lab(x),
        kornia.geometry.rotate(x, torch.tensor([30.0])),
        kornia.morphology.dilation(x, torch.ones(3, 3)),
        kornia.losses.ssim_loss(x, x.flip(-1), 5),
        kornia.enhance.adjust_contrast(x, 0.5),
        kornia.geometry.transform.warp_perspective(x, torch.eye(3)[None], (20, 20)),
        kornia.filters.canny(x)[0],
        kornia.augmentation.RandomHorizontalFlip(p=1.0)(x),
    ]


@case("torchdiffeq")
def _():
    from torchdiffeq import odeint, odeint_adjoint

    f = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2)).double()

    class G(nn.Module):
        def __init__(s):
            super().__init__()
            s.f = f

        def forward(s, t, y):
            return s.f(y)

    y0 = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    t = torch.linspace(0, 1, 5, dtype=torch.float64)
    a = odeint(G(), y0, t)
    b = odeint_adjoint(G(), y0, t)
    b.sum().backward()
    return [a, b, f[0].weight.grad, odeint(G(), y0, t, method="rk4"), odeint(G(), y0, t, method="dopri8")]


@case("torchsde")
def _():
    import torchsde

    class S(nn.Module):
        noise_type = "diagonal"
        sde_type = "ito"

        def __init__(s):
            super().__init__()
            s.m = nn.Linear(3, 3)

        def f(s, t, y):
            return s.m(y)

        def g(s, t, y):
            return 0.1 * torch.ones_like(y)

    s = S()
    bm = torchsde.BrownianInterval(t0=0.0, t1=1.0, size=(4, 3), entropy=7, levy_area_approximation="space-time")
    ys = torchsde.sdeint(s, torch.ones(4, 3), torch.linspace(0, 1, 5), bm=bm, dt=0.1)
    ys.sum().backward()
    return [ys, s.m.weight.grad]


@case("torchcde")
def _():
    import torchcde

    x = torch.randn(2, 10, 3)
    return [
        torchcde.hermite_cubic_coefficients_with_backward_differences(x),
        torchcde.natural_cubic_coeffs(x),
        torchcde.CubicSpline(torchcde.natural_cubic_coeffs(x)).derivative(torch.tensor(0.5)),
    ]


@case("x-transformers")
def _():
    from x_transformers import TransformerWrapper, Decoder, AutoregressiveWrapper

    m = TransformerWrapper(
        num_tokens=64, max_seq_len=32, attn_layers=Decoder(dim=32, depth=2, heads=4, rotary_pos_emb=True, ff_glu=True, use_rmsnorm=True)
    )
    ids = torch.randint(0, 64, (2, 32))
    a = AutoregressiveWrapper(m)
    opt = torch.optim.Adam(a.parameters(), 1e-3)
    ls = []
    for _ in range(3):
        l = a(ids)
        opt.zero_grad()
        l.backward()
        opt.step()
        ls.append(l.item())
    return ls + [a.eval().generate(ids[:, :4], 10, temperature=0.0)]


@case("entmax")
def _():
    from entmax import sparsemax, entmax15, entmax_bisect

    x = torch.randn(3, 6, requires_grad=True)
    r = [sparsemax(x, dim=-1), entmax15(x, dim=-1), entmax_bisect(x, alpha=1.3)]
    sum((q * q).sum() for q in r).backward()
    return r + [x.grad]


@case("lion + ema")
def _():
    from lion_pytorch import Lion
    from ema_pytorch import EMA

    m = nn.Linear(5, 2)
    ema = EMA(m, beta=0.9, update_after_step=0, update_every=1)
    o = Lion(m.parameters(), lr=1e-2, weight_decay=1e-2)
    x = torch.randn(8, 5)
    ls = []
    for _ in range(5):
        l = m(x).square().mean()
        o.zero_grad()
        l.backward()
        o.step()
        ema.update()
        ls.append(l.item())
    return ls + [ema(x)]


@case("vector-quantize")
def _():
    from vector_quantize_pytorch import VectorQuantize, FSQ, ResidualVQ

    x = torch.randn(1, 32, 16)
    return [
        VectorQuantize(dim=16, codebook_size=24)(x)[2],
        FSQ(levels=[4, 4, 4], dim=16)(x)[0],
        ResidualVQ(dim=16, num_quantizers=2, codebook_size=16)(x)[2],
    ]


@case("rotary")
def _():
    from rotary_embedding_torch import RotaryEmbedding

    return RotaryEmbedding(dim=8).rotate_queries_or_keys(torch.randn(1, 2, 6, 8))


@case("msssim")
def _():
    from pytorch_msssim import ssim, ms_ssim

    a, b = torch.rand(1, 3, 176, 176), torch.rand(1, 3, 176, 176)
    return [ssim(a, b, data_range=1), ms_ssim(a, b, data_range=1)]


@case("metric-learning")
def _():
    from pytorch_metric_learning import losses, miners

    e, y = torch.randn(16, 8), torch.randint(0, 4, (16,))
    mn = miners.MultiSimilarityMiner()
    return [
        losses.TripletMarginLoss()(e, y, mn(e, y)),
        losses.NTXentLoss()(e, y),
        losses.ArcFaceLoss(4, 8)(e, y),
        losses.ContrastiveLoss()(e, y),
        losses.CircleLoss()(e, y),
        losses.ProxyAnchorLoss(4, 8)(e, y),
    ]


@case("geotorch")
def _():
    import geotorch

    l = nn.Linear(6, 4)
    geotorch.orthogonal(l, "weight")
    x = torch.randn(8, 6)
    r = [l(x)]
    k = nn.Linear(5, 5)
    geotorch.positive_definite(k, "weight")
    s = nn.Linear(5, 5)
    geotorch.skew(s, "weight")
    return r + [k.weight, s.weight]


@case("torchinfo")
def _():
    from torchinfo import summary

    s = summary(nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2)), input_size=(1, 3, 8, 8), verbose=0)
    return [s.total_params, s.total_mult_adds, s.total_output_bytes, len(str(s))]


@case("jaxtyping")
def _():
    from jaxtyping import Float, Int

    return [
        isinstance(torch.ones(2, 3), Float[torch.Tensor, "a b"]),
        isinstance(torch.ones(2, 3), Int[torch.Tensor, "a b"]),
        isinstance(torch.ones(2), Float[torch.Tensor, "a b"]),
    ]


@case("higher")
def _():
    import higher

    m = nn.Linear(3, 1)
    o = torch.optim.SGD(m.parameters(), lr=0.1)
    x = torch.randn(8, 3)
    with higher.innerloop_ctx(m, o) as (fm, do):
        for _ in range(3):
            do.step(fm(x).square().mean())
        l = fm(x).square().mean()
        g = torch.autograd.grad(l, fm.parameters(time=0))
    return [l, list(g)]


@case("backpack")
def _():
    from backpack import backpack, extend
    from backpack.extensions import BatchGrad, Variance, DiagGGNExact, SumGradSquared

    m = extend(nn.Sequential(nn.Linear(4, 5), nn.Sigmoid(), nn.Linear(5, 3)))
    lf = extend(nn.CrossEntropyLoss())
    l = lf(m(torch.randn(6, 4)), torch.randint(0, 3, (6,)))
    with backpack(BatchGrad(), Variance(), DiagGGNExact(), SumGradSquared()):
        l.backward()
    return [l] + [v for p in m.parameters() for v in (p.grad_batch, p.variance, p.diag_ggn_exact)]


@case("linear_operator")
def _():
    from linear_operator import operators as ops

    A = torch.randn(6, 6)
    K = ops.DenseLinearOperator(A @ A.T + 6 * torch.eye(6))
    y = torch.randn(6)
    return [
        K.solve(y.unsqueeze(-1)),
        K.logdet(),
        ops.KroneckerProductLinearOperator(K, K).matmul(torch.ones(36, 1)).sum(),
        (K + ops.DiagLinearOperator(torch.ones(6))).cholesky().to_dense(),
    ]


@case("gpytorch")
def _():
    import gpytorch

    class M(gpytorch.models.ExactGP):
        def __init__(s, x, y, l):
            super().__init__(x, y, l)
            s.mean_module = gpytorch.means.ConstantMean()
            s.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

        def forward(s, x):
            return gpytorch.distributions.MultivariateNormal(s.mean_module(x), s.covar_module(x))

    x = torch.linspace(0, 1, 20)
    y = torch.sin(6 * x)
    l = gpytorch.likelihoods.GaussianLikelihood()
    m = M(x, y, l)
    m.train()
    l.train()
    o = torch.optim.Adam(m.parameters(), lr=0.1)
    mll = gpytorch.mlls.ExactMarginalLogLikelihood(l, m)
    ls = []
    for _ in range(5):
        o.zero_grad()
        q = -mll(m(x), y)
        q.backward()
        o.step()
        ls.append(q.item())
    return ls


@case("pyro")
def _():
    import pyro
    import pyro.distributions as D
    from pyro.infer import SVI, Trace_ELBO

    pyro.clear_param_store()
    data = torch.randn(20) + 2

    def model(d):
        mu = pyro.sample("mu", D.Normal(0.0, 10.0))
        pyro.sample("x", D.Normal(mu, 1.0).expand([20]).to_event(1), obs=d)

    def guide(d):
        pyro.sample("mu", D.Normal(pyro.param("m", torch.tensor(0.0)), pyro.param("s", torch.tensor(1.0), constraint=D.constraints.positive)))

    svi = SVI(model, guide, pyro.optim.Adam({"lr": 0.1}), Trace_ELBO())
    return [svi.step(data) for _ in range(10)]
