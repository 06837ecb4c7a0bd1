"""Saving and resuming: general checkpoints, several models in a file, partial loads, whole modules, `assign` under meta, warm starts, random states."""

import os
import tempfile

import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader, RandomSampler, TensorDataset


class Net(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, width), nn.BatchNorm1d(width), nn.SiLU(), nn.Dropout(0.1))
        self.head = nn.Linear(width, 1)
        self.register_buffer("scale", torch.tensor(2.0))
        self.register_buffer("scratch", torch.zeros(3), persistent=False)

    def forward(self, x):
        return self.head(self.body(x)) * self.scale

    def get_extra_state(self):
        return {"version": 3}

    def set_extra_state(self, state):
        self.loaded_version = state["version"]


def epochs(model, optimizer, scheduler, loader, count):
    for _ in range(count):
        total = 0.0
        for x, y in loader:
            optimizer.zero_grad(set_to_none=True)
            loss = nn.functional.huber_loss(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.item()
        scheduler.step(total) if isinstance(scheduler, optim.lr_scheduler.ReduceLROnPlateau) else scheduler.step()
        print(f"loss {total:.6f} lr {optimizer.param_groups[0]['lr']:.6f}")
    return total


def main():
    torch.manual_seed(13)
    x = torch.randn(128, 8)
    data = TensorDataset(x, (x[:, :1] * x[:, 1:2]).contiguous())
    generator = torch.Generator()
    generator.manual_seed(1)
    loader = DataLoader(data, batch_size=32, sampler=RandomSampler(data, generator=generator))
    model = Net()
    optimizer = optim.NAdam(model.parameters(), lr=0.01)
    scheduler = optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.02, total_steps=8)
    epochs(model, optimizer, scheduler, loader, 3)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "checkpoint.tar")
        states = {"rng": torch.get_rng_state(), "sampler": generator.get_state()}
        torch.save(
            {"epoch": 3, "model": model.state_dict(), "optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict(), **states}, path
        )
        went_on = epochs(model, optimizer, scheduler, loader, 2)
        again = Net()
        optimizer2 = optim.NAdam(again.parameters(), lr=0.5)
        scheduler2 = optim.lr_scheduler.OneCycleLR(optimizer2, max_lr=0.02, total_steps=8)
        checkpoint = torch.load(path, weights_only=True)
        print(again.load_state_dict(checkpoint["model"]), again.loaded_version)
        optimizer2.load_state_dict(checkpoint["optimizer"])
        scheduler2.load_state_dict(checkpoint["scheduler"])
        torch.set_rng_state(checkpoint["rng"])
        generator.set_state(checkpoint["sampler"])
        print("the same", epochs(again, optimizer2, scheduler2, loader, 2) == went_on)
        print(sorted(checkpoint["model"]), sorted(checkpoint["optimizer"]["state"][0]))
        wider = Net(16)
        wider.extra = nn.Linear(1, 1)
        print(wider.load_state_dict(checkpoint["model"], strict=False))
        try:
            Net(17).load_state_dict(checkpoint["model"])
        except RuntimeError as error:
            print(str(error).splitlines()[1].strip())
        whole = os.path.join(folder, "model.pt")
        torch.save(model, whole)
        try:
            torch.load(whole)
        except Exception as error:
            print(type(error).__name__)
        loaded = torch.load(whole, weights_only=False).eval()
        print(torch.equal(loaded(x[:4]), model.eval()(x[:4])))
        with torch.serialization.safe_globals([Net]):
            print(Net in torch.serialization.get_safe_globals())
        with torch.device("meta"):
            empty = Net()
        print(empty.head.weight.device, empty.head.weight.shape)
        state = torch.load(path, weights_only=True, mmap=True)["model"]
        empty.load_state_dict(state, assign=True)
        print(empty.head.weight.device, type(empty.head.weight).__name__, torch.equal(empty.head.weight, state["head.weight"]))
    averaged = optim.swa_utils.AveragedModel(model, multi_avg_fn=optim.swa_utils.get_ema_multi_avg_fn(0.9))
    for _ in range(3):
        with torch.no_grad():
            for p in model.parameters():
                p.mul_(0.9)
        averaged.update_parameters(model)
    optim.swa_utils.update_bn(loader, averaged)
    print(int(averaged.n_averaged), f"{averaged.module.head.weight.norm().item():.6f} {averaged.module.body[1].running_var.mean().item():.6f}")
    plateau = optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, factor=0.5, threshold=1e9)
    epochs(model.train(), optimizer, plateau, loader, 3)


if __name__ == "__main__":
    main()
