"""Sound: chirps written here, STFT and its inverse, mel filters, SpecAugment, resampling by sinc kernels, an acoustic model with CTC, greedy and prefix beam decoding."""

import collections
import itertools
import math

import torch
from torch import nn
from torch.nn import functional as F

RATE = 4000
TONES = {"a": 400.0, "b": 700.0, "c": 1100.0, "d": 1600.0}
LETTERS = "-abcd"


def word(text, g):
    parts = []
    for letter in text:
        n = int(torch.randint(300, 500, (), generator=g))
        t = torch.arange(n) / RATE
        envelope = torch.sin(math.pi * torch.arange(n) / n) ** 0.5
        parts += [torch.cos(2 * math.pi * TONES[letter] * t + torch.rand((), generator=g)) * envelope, torch.zeros(80)]
    wave = torch.cat(parts)
    return wave + 0.05 * torch.randn(wave.shape, generator=g)


def mel_filters(bins, mels):
    hz = torch.linspace(0, RATE / 2, bins)
    to_mel = lambda f: 2595.0 * math.log10(1.0 + f / 700.0)  # noqa: E731
    points = 700.0 * (10.0 ** (torch.linspace(to_mel(50.0), to_mel(RATE / 2), mels + 2) / 2595.0) - 1.0)
    slope = points.unsqueeze(0) - hz.unsqueeze(1)
    width = points[1:] - points[:-1]
    return torch.clamp_min(torch.minimum(-slope[:, :-2] / width[:-1], slope[:, 2:] / width[1:]), 0.0)


class LogMel(nn.Module):
    def __init__(self, n_fft=128, hop=64, mels=16):
        super().__init__()
        self.n_fft, self.hop = n_fft, hop
        self.register_buffer("window", torch.hann_window(n_fft))
        self.register_buffer("filters", mel_filters(n_fft // 2 + 1, mels))

    def forward(self, wave):
        spec = torch.stft(wave, self.n_fft, self.hop, window=self.window, return_complex=True, pad_mode="reflect")
        power = spec.abs().square()
        return torch.log1p(100 * power.transpose(-1, -2) @ self.filters)


def spec_augment(x, g, width=3, steps=3):
    x = x.clone()
    f0, t0 = int(torch.randint(0, x.shape[-1] - width, (), generator=g)), int(torch.randint(0, x.shape[-2] - steps, (), generator=g))
    x[..., f0 : f0 + width] = 0
    x[..., t0 : t0 + steps, :] = x.mean()
    return x


def resample(wave, old, new, width=6):
    gcd = math.gcd(old, new)
    old, new = old // gcd, new // gcd
    base = min(old, new) * 0.99
    w = math.ceil(width * old / base)
    idx = torch.arange(-w, w + old, dtype=torch.float64)[None, None] / old
    t = (torch.arange(0, -new, -1, dtype=torch.float64)[:, None, None] / new + idx) * base
    t = t.clamp_(-width, width)
    window = torch.cos(t * math.pi / width / 2) ** 2
    kernel = torch.where(t == 0, 1.0, torch.sinc(t)) * window * base / old
    padded = F.pad(wave[None, None], (w, w + old))
    out = F.conv1d(padded, kernel.to(wave.dtype), stride=old)
    return out.transpose(1, 2).reshape(-1)[: math.ceil(new * len(wave) / old)]


class Acoustic(nn.Module):
    def __init__(self, mels=16, width=24):
        super().__init__()
        self.front = nn.Sequential(
            nn.Conv1d(mels, width, 3, padding=1),
            nn.InstanceNorm1d(width, affine=True),
            nn.SiLU(),
            nn.Conv1d(width, width, 3, stride=2, padding=1, groups=4),
            nn.SiLU(),
        )
        self.gru = nn.GRU(width, width, bidirectional=True, batch_first=True)
        self.out = nn.utils.parametrizations.weight_norm(nn.Linear(2 * width, len(LETTERS)))

    def forward(self, x, lengths):
        h = self.front(x.transpose(1, 2)).transpose(1, 2)
        lengths = torch.div(lengths + 1, 2, rounding_mode="floor")
        packed = nn.utils.rnn.pack_padded_sequence(h, lengths, batch_first=True, enforce_sorted=False)
        h, _ = nn.utils.rnn.pad_packed_sequence(self.gru(packed)[0], batch_first=True)
        return self.out(h).log_softmax(-1), lengths


def greedy(log_probs):
    return "".join(LETTERS[k] for k, _ in itertools.groupby(log_probs.argmax(-1).tolist()) if k)


def prefix_beam(log_probs, beam=6):
    table = {(): (0.0, -math.inf)}
    for step in log_probs.tolist():
        new = collections.defaultdict(lambda: (-math.inf, -math.inf))

        def add(prefix, blank, other):
            b, o = new[prefix]
            new[prefix] = (torch.logaddexp(torch.tensor(b), torch.tensor(blank)).item(), torch.logaddexp(torch.tensor(o), torch.tensor(other)).item())

        for prefix, (pb, po) in table.items():
            both = torch.logsumexp(torch.tensor([pb, po]), 0).item()
            for c, p in enumerate(step):
                if c == 0:
                    add(prefix, both + p, -math.inf)
                elif prefix and prefix[-1] == c:
                    add(prefix, -math.inf, po + p)
                    add((*prefix, c), -math.inf, pb + p)
                else:
                    add((*prefix, c), -math.inf, both + p)
        table = dict(sorted(new.items(), key=lambda kv: -max(kv[1]))[:beam])
    return "".join(LETTERS[c] for c in next(iter(table)))


def main():
    torch.manual_seed(2)
    g = torch.Generator().manual_seed(1)
    words = ["".join("abcd"[i] for i in torch.randint(0, 4, (int(torch.randint(2, 5, (), generator=g)),), generator=g).tolist()) for _ in range(24)]
    waves = [word(w, g) for w in words]
    mel = LogMel()
    features = [mel(w) for w in waves]
    print(words[:4], [tuple(f.shape) for f in features[:3]], f"{features[0].mean().item():.5f} {mel.filters.sum().item():.4f}")
    window = torch.hamming_window(128, periodic=True)
    spec = torch.stft(waves[0], 128, 32, window=window, return_complex=True, normalized=True)
    back = torch.istft(spec, 128, 32, window=window, length=len(waves[0]), normalized=True)
    print(spec.shape, spec.dtype, torch.allclose(back, waves[0], atol=1e-5), f"{torch.fft.rfft(waves[0]).abs().argmax().item()}")
    low = resample(waves[0], RATE, 3000)
    print(low.shape, f"{low.std().item():.5f}", f"{resample(torch.ones(200), 4, 3)[60:90].mean().item():.5f}")
    lengths = torch.tensor([len(f) for f in features])
    batch = nn.utils.rnn.pad_sequence(features, batch_first=True)
    targets = [torch.tensor([LETTERS.index(c) for c in w]) for w in words]
    flat, sizes = torch.cat(targets), torch.tensor([len(t) for t in targets])
    model = Acoustic()
    ctc = nn.CTCLoss(blank=0, zero_infinity=True, reduction="mean")
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02, betas=(0.9, 0.98))
    scheduler = torch.optim.lr_scheduler.CyclicLR(optimizer, 0.002, 0.02, step_size_up=6, mode="triangular2", cycle_momentum=False)
    for step in range(24):
        optimizer.zero_grad()
        log_probs, steps = model(spec_augment(batch, g), lengths)
        loss = ctc(log_probs.transpose(0, 1), flat, steps, sizes)
        loss.backward()
        optimizer.step()
        scheduler.step()
        if step % 8 == 0:
            print(f"step {step} ctc {loss.item():.4f} lr {scheduler.get_last_lr()[0]:.5f}")
    model.eval()
    with torch.no_grad():
        log_probs, steps = model(batch, lengths)
        padded = nn.utils.rnn.pad_sequence(targets, batch_first=True)
        per = F.ctc_loss(log_probs.transpose(0, 1), padded, steps, sizes, reduction="none")
        print(
            f"{per.mean().item():.3f}",
            sum(greedy(p[:n]) == w for p, n, w in zip(log_probs, steps, words)) >= 0,
            prefix_beam(log_probs[0, : steps[0]]) == prefix_beam(log_probs[0, : steps[0]], 12),
        )
    print(sorted(model.state_dict())[-4:], model.out.parametrizations.weight.original0.shape)
    print(
        torch.bartlett_window(5),
        torch.kaiser_window(4, True, beta=8.0),
        torch.signal.windows.gaussian(5, std=1.5),
        torch.blackman_window(4, periodic=False),
    )


if __name__ == "__main__":
    main()
