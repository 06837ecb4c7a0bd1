"""Mixed precision as written for accelerators and CPUs: autocast, GradScaler, clipping of unscaled gradients, accumulation, penalties, checkpoints; LBFGS beside."""

import io

import torch
from torch import nn


def make_model(in_size, out_size, num_layers):
    layers = []
    for _ in range(num_layers - 1):
        layers += [nn.Linear(in_size, in_size), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(in_size, out_size))


def main():
    torch.manual_seed(11)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    use_amp = True
    data, targets = [torch.randn(64, 32, device=device) for _ in range(6)], [torch.randn(64, 32, device=device) for _ in range(6)]
    loss_fn = nn.MSELoss().to(device)
    net = make_model(32, 32, 3).to(device)
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler(device, enabled=use_amp, init_scale=1024.0, growth_interval=4)
    for epoch in range(2):
        for input, target in zip(data, targets):
            with torch.autocast(device_type=device, dtype=torch.bfloat16, enabled=use_amp):
                output = net(input)
                assert output.dtype is torch.bfloat16
                loss = loss_fn(output, target)
                assert loss.dtype is torch.float32
            scaler.scale(loss).backward()
            scaler.unscale_(opt)
            norm = torch.nn.utils.clip_grad_norm_(net.parameters(), max_norm=0.1)
            scaler.step(opt)
            scaler.update()
            opt.zero_grad()
        print(f"epoch {epoch}: loss {loss.item():.3f} norm {norm.item():.2f} scale {scaler.get_scale():.0f}")
    checkpoint = {"model": net.state_dict(), "optimizer": opt.state_dict(), "scaler": scaler.state_dict()}
    torch.save(checkpoint, buffer := io.BytesIO())
    buffer.seek(0)
    again = torch.load(buffer, map_location=device)
    net.load_state_dict(again["model"])
    opt.load_state_dict(again["optimizer"])
    scaler.load_state_dict(again["scaler"])
    print({k: v for k, v in again["scaler"].items()})
    net[0].weight.register_hook(lambda g: torch.full_like(g, float("inf")))
    before = net[2].weight.clone()
    scaler.scale(loss_fn(net(data[0]), targets[0])).backward()
    print("skipped", scaler.step(opt), torch.equal(before, net[2].weight))
    scaler.update()
    print("scale", scaler.get_scale())

    net = make_model(32, 32, 2)
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cpu")
    for input, target in zip(data, targets):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = loss_fn(net(input), target)
        scaled = torch.autograd.grad(scaler.scale(loss), net.parameters(), create_graph=True)
        grads = [p / scaler.get_scale() for p in scaled]
        with torch.autocast("cpu", dtype=torch.bfloat16):
            penalty = sum(g.pow(2).sum() for g in grads).sqrt()
            loss = loss + penalty
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
        opt.zero_grad()
    print(f"with penalty {loss.item():.3f}")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        a, b = torch.randn(4, 4), torch.randn(4, 4)
        print((a @ b).dtype, torch.softmax(a @ b, -1).dtype, (a + (a @ b)).dtype, torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu"))
        with torch.autocast("cpu", enabled=False):
            print((a @ b).dtype)

    x = torch.tensor([-1.5, 2.0], dtype=torch.float64, requires_grad=True)
    lbfgs = torch.optim.LBFGS([x], lr=1, max_iter=40, history_size=10, line_search_fn="strong_wolfe")

    def closure():
        lbfgs.zero_grad()
        loss = (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
        loss.backward()
        return loss

    first = lbfgs.step(closure)
    print(f"{first.item():.4f} -> {closure().item():.2e}", x.detach().round(decimals=4).tolist(), lbfgs.state[x]["func_evals"])


if __name__ == "__main__":
    main()
