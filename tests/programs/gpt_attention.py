"""A small GPT with scaled_dot_product_attention, tied weights, gradient accumulation, rotary positions, a cache of keys and top-k sampling; then distilled."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

TEXT = "the quick brown fox jumps over the lazy dog while five boxing wizards vex a jaded sphinx of black quartz. " * 12


class CausalSelfAttention(nn.Module):
    def __init__(self, n_head, n_embd, dropout=0.0):
        super().__init__()
        self.qkv, self.proj = nn.Linear(n_embd, 3 * n_embd, bias=False), nn.Linear(n_embd, n_embd, bias=False)
        self.n_head, self.dropout = n_head, dropout

    def forward(self, x, rotation, cache=None):
        B, T, C = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, self.n_head, C // self.n_head).permute(2, 0, 3, 1, 4).unbind(0)
        q, k = (torch.view_as_real(torch.view_as_complex(t.reshape(*t.shape[:-1], -1, 2)) * rotation).flatten(-2) for t in (q, k))
        if cache is not None:
            if cache:
                k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
            cache[:] = [k, v]
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout if self.training else 0.0, is_causal=T > 1)
        return self.proj(y.transpose(1, 2).reshape(B, T, C))


class Block(nn.Module):
    def __init__(self, n_head, n_embd):
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(n_embd), nn.LayerNorm(n_embd)
        self.attention = CausalSelfAttention(n_head, n_embd)
        self.mlp = nn.ModuleDict(dict(up=nn.Linear(n_embd, 4 * n_embd), act=nn.GELU(approximate="tanh"), down=nn.Linear(4 * n_embd, n_embd)))

    def forward(self, x, rotation, cache=None):
        x = x + self.attention(self.norm1(x), rotation, cache)
        return x + self.mlp.down(self.mlp.act(self.mlp.up(self.norm2(x))))


class GPT(nn.Module):
    def __init__(self, vocabulary, n_layer, n_head, n_embd, block=64):
        super().__init__()
        self.embedding, self.norm, self.head = nn.Embedding(vocabulary, n_embd), nn.LayerNorm(n_embd), nn.Linear(n_embd, vocabulary, bias=False)
        self.blocks = nn.ModuleList(Block(n_head, n_embd) for _ in range(n_layer))
        self.head.weight = self.embedding.weight
        angles = torch.outer(torch.arange(block), 1.0 / 10000 ** (torch.arange(0, n_embd // n_head, 2) / (n_embd // n_head)))
        self.register_buffer("rotation", torch.polar(torch.ones_like(angles), angles), persistent=False)
        self.apply(self._init)

    def _init(self, module):
        if isinstance(module, nn.Linear | nn.Embedding):
            torch.nn.init.normal_(module.weight, mean=0.0, std=0.02)
            if getattr(module, "bias", None) is not None:
                torch.nn.init.zeros_(module.bias)

    def forward(self, ids, targets=None, caches=None, start=0):
        x, rotation = self.embedding(ids), self.rotation[start : start + ids.size(1)]
        for i, block in enumerate(self.blocks):
            x = block(x, rotation, None if caches is None else caches[i])
        logits = self.head(self.norm(x))
        return logits, None if targets is None else F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))

    @torch.no_grad()
    def generate(self, ids, count, top_k=None):
        caches, given = [[] for _ in self.blocks], ids
        for _ in range(count):
            logits = self(given, caches=caches, start=ids.size(1) - given.size(1))[0][:, -1]
            if top_k is None:
                given = logits.argmax(-1, keepdim=True)
            else:
                least = torch.topk(logits, top_k).values[:, [-1]]
                logits[logits < least] = -float("inf")
                given = torch.multinomial(F.softmax(logits, dim=-1), num_samples=1)
            ids = torch.cat((ids, given), dim=1)
        return ids


def main():
    torch.manual_seed(1337)
    letters = sorted(set(TEXT))
    data = torch.tensor([letters.index(c) for c in TEXT], dtype=torch.long)

    def batch(size=8, block=32):
        starts = torch.randint(len(data) - block, (size,))
        return torch.stack([data[i : i + block] for i in starts]), torch.stack([data[i + 1 : i + block + 1] for i in starts])

    model = GPT(len(letters), 2, 4, 32)
    print(sum(p.numel() for p in model.parameters()), "parameters")
    decay = [p for p in model.parameters() if p.dim() >= 2]
    optimizer = torch.optim.AdamW(
        [{"params": decay, "weight_decay": 0.1}, {"params": [p for p in model.parameters() if p.dim() < 2], "weight_decay": 0.0}],
        lr=3e-3,
        betas=(0.9, 0.95),
    )
    warm = lambda it: min((it + 1) / 10, 0.5 * (1 + math.cos(math.pi * it / 60)) + 0.1)  # noqa: E731
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, warm)
    for step in range(40):
        total = 0.0
        for _ in range(2):
            loss = model(*batch())[1] / 2
            loss.backward()
            total += loss.item()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad(set_to_none=True)
        if step % 10 == 9:
            print(f"step {step + 1} loss {total:.4f} norm {norm:.4f} lr {scheduler.get_last_lr()[0]:.6f}")
    model.eval()
    prompt = data[:8].unsqueeze(0)
    print("greedy:", "".join(letters[i] for i in model.generate(prompt, 24)[0].tolist()))
    torch.manual_seed(1)
    print("sampled:", "".join(letters[i] for i in model.generate(prompt, 24, top_k=5)[0].tolist()))
    full, caches = model(data[None, :20])[0], [[] for _ in model.blocks]
    steps = torch.cat([model(data[None, i : i + 1], caches=caches, start=i)[0] for i in range(20)], 1)
    print("cache agrees", torch.allclose(full, steps, atol=1e-4))
    q = torch.randn(1, 4, 16, 8)
    with sdpa_kernel([SDPBackend.MATH]):
        exact = F.scaled_dot_product_attention(q, q, q, is_causal=True)
    mask = torch.ones(16, 16, dtype=torch.bool).tril()
    print(torch.allclose(exact, F.scaled_dot_product_attention(q, q, q, attn_mask=mask), atol=1e-5), f"{exact.norm().item():.5f}")

    student = GPT(len(letters), 1, 2, 16)
    optimizer = torch.optim.Adam(student.parameters(), lr=1e-2)
    for step in range(10):
        x, y = batch()
        with torch.no_grad():
            soft = F.softmax(model(x)[0] / 2, dim=-1)
        logits, hard = student(x, y)
        distilled = F.kl_div(F.log_softmax(logits / 2, dim=-1).flatten(0, 1), soft.flatten(0, 1), reduction="batchmean") * 4
        loss = 0.75 * distilled + 0.25 * hard
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"student: {distilled.item():.4f} {hard.item():.4f}")


if __name__ == "__main__":
    main()
