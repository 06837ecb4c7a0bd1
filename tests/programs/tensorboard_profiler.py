"""Watching a training: SummaryWriter beside a model, the profiler with a schedule and labels, benchmark's timer, zero_grad and foreach details."""

import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.utils.benchmark as benchmark
from torch.profiler import ProfilerActivity, profile, record_function, schedule
from torch.utils.data import DataLoader, IterableDataset, WeightedRandomSampler, get_worker_info
from torch.utils.tensorboard import SummaryWriter


class Stream(IterableDataset):
    def __init__(self, start, end):
        super().__init__()
        self.start, self.end = start, end

    def __iter__(self):
        info = get_worker_info()
        first, step = (self.start, 1) if info is None else (self.start + info.id, info.num_workers)
        return iter(range(first, self.end, step))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.fc = nn.Linear(4 * 6 * 6, 3)

    def forward(self, x):
        with record_function("LABEL: conv"):
            x = F.max_pool2d(F.relu(self.conv(x)), 2)
        return self.fc(x.flatten(1))


def collate(samples):
    return torch.stack([s[0] for s in samples]), torch.as_tensor([s[1] for s in samples])


def main():
    torch.manual_seed(15)
    labels = torch.tensor([0] * 80 + [1] * 30 + [2] * 10)
    data = [(torch.randn(1, 14, 14) + label, int(label)) for label in labels]
    weights = 1.0 / torch.bincount(labels).double()
    sampler = WeightedRandomSampler(weights[labels], num_samples=96, replacement=True)
    loader = DataLoader(data, batch_size=32, sampler=sampler, collate_fn=collate, drop_last=True)
    net = Net()
    optimizer = torch.optim.RMSprop(net.parameters(), lr=1e-3, momentum=0.5, centered=True)
    with tempfile.TemporaryDirectory() as folder:
        with SummaryWriter(os.path.join(folder, "runs")) as writer:
            writer.add_graph(net, data[0][0][None])
            traces = []
            with profile(
                activities=[ProfilerActivity.CPU],
                schedule=schedule(wait=1, warmup=1, active=2, repeat=1),
                on_trace_ready=lambda p: traces.append(p.step_num),
                record_shapes=True,
            ) as prof:
                step = 0
                for epoch in range(2):
                    for x, y in loader:
                        loss = F.cross_entropy(net(x), y)
                        optimizer.zero_grad()
                        loss.backward()
                        optimizer.step()
                        prof.step()
                        writer.add_scalar("training loss", loss.item(), step)
                        step += 1
                    print(f"epoch {epoch}: {loss.item():.5f}", torch.bincount(y, minlength=3).tolist())
            writer.add_histogram("conv", net.conv.weight, step)
            writer.add_images("batch", x[:4].clamp(0, 1), step)
            writer.add_pr_curve("pr", y == 0, net(x).softmax(1)[:, 0], step)
            writer.add_embedding(x.flatten(1), metadata=y.tolist(), global_step=step)
            writer.add_text("note", "done", step)
            writer.add_hparams({"lr": 1e-3}, {"loss": loss.item()})
        print(traces, any(name.startswith("events.out") for name in os.listdir(os.path.join(folder, "runs"))))
        names = {e.key for e in prof.key_averages()}
        print(
            [
                n
                for n in ("LABEL: conv", "aten::conv2d", "aten::linear", "aten::relu", "ProfilerStep#2", "aten::max_pool2d")
                if n not in names and n != "ProfilerStep#2"
            ]
        )
        text = prof.key_averages(group_by_input_shape=True).table(sort_by="cpu_time_total", row_limit=5)
        print("Self CPU" in text, "LABEL: conv" in prof.key_averages().table(row_limit=200))
        prof.export_chrome_trace(os.path.join(folder, "trace.json"))
        print(os.path.getsize(os.path.join(folder, "trace.json")) > 1000)
    print([batch.tolist() for batch in DataLoader(Stream(3, 10), batch_size=3)])
    print(sorted(torch.cat(list(DataLoader(Stream(3, 10), num_workers=2, batch_size=2))).tolist()))
    timer = benchmark.Timer("a.mul(b).sum()", setup="a, b = torch.ones(8), torch.ones(8)", label="products", sub_label="sum", num_threads=1)
    measured = timer.timeit(20)
    print(measured.number_per_run, 0 < measured.mean < 1, benchmark.Compare([measured]).__class__.__name__)
    net.zero_grad(set_to_none=False)
    print(all(bool((p.grad == 0).all()) for p in net.parameters()))
    with torch.autograd.profiler.profile() as old:
        torch.ones(3, 3) @ torch.ones(3, 3)
    print("aten::mm" in {e.key for e in old.key_averages()} or "aten::matmul" in {e.key for e in old.key_averages()})
    torch._foreach_mul_([p.data for p in net.parameters()], 0.5)
    print(f"{torch.linalg.vector_norm(torch.stack(torch._foreach_norm(list(net.parameters())))).item():.5f}")


if __name__ == "__main__":
    main()
