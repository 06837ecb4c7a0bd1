"""Hooks of every kind: of modules (forward, pre, backward, with kwargs, global), tensors and nodes, saved tensors on disk, an optimizer step inside backward."""

import os
import tempfile
import uuid

import torch
import torch.nn as nn
from torch.nn.modules.module import register_module_forward_hook


def optimizer_in_backward():
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4))
    optimizers = {p: torch.optim.Adam([p], foreach=False) for p in model.parameters()}

    def optimizer_hook(parameter):
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    for p in model.parameters():
        p.register_post_accumulate_grad_hook(optimizer_hook)
    x = torch.randn(32, 8)
    for _ in range(5):
        loss = model(x).square().mean()
        loss.backward()
    print(f"loss {loss.item():.6f}", all(p.grad is None for p in model.parameters()))


class SelfDeletingFile:
    def __init__(self, folder):
        self.name = os.path.join(folder, str(uuid.uuid4()))

    def __del__(self):
        os.remove(self.name)


def saved_on_disk():
    with tempfile.TemporaryDirectory() as folder:
        count = [0]

        def pack(tensor):
            count[0] += 1
            file = SelfDeletingFile(folder)
            torch.save(tensor, file.name)
            return file

        def unpack(file):
            return torch.load(file.name, weights_only=True)

        x = torch.randn(5, requires_grad=True)
        with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
            y = x.exp() * x
        print("files", count[0], len(os.listdir(folder)))
        y.sum().backward()
        print(torch.allclose(x.grad, x.exp() * (1 + x)))
        del y
        print("left", len(os.listdir(folder)))
    with torch.autograd.graph.save_on_cpu():
        z = x.sin() * x
    z.sum().backward()
    with torch.autograd.graph.disable_saved_tensors_hooks("not here"):
        try:
            with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
                pass
        except RuntimeError as error:
            print(error)
    y = x.pow(2)
    print(torch.equal(y.grad_fn._saved_self, x), y.grad_fn._saved_exponent, y.grad_fn._raw_saved_self is not None)


def modules():
    net = nn.Sequential(nn.Linear(4, 6), nn.ReLU(inplace=False), nn.Linear(6, 3))
    log = []
    handles = [
        net[0].register_forward_pre_hook(lambda m, args: log.append(("pre", type(m).__name__, tuple(args[0].shape)))),
        net[0].register_forward_hook(lambda m, args, kwargs, out: out * 2, with_kwargs=True),
        net[2].register_full_backward_hook(lambda m, gi, go: log.append(("backward", tuple(gi[0].shape), round(go[0].sum().item(), 4)))),
        net[2].register_full_backward_pre_hook(lambda m, go: (go[0] * 3,)),
        register_module_forward_hook(lambda m, args, out: log.append(("all", type(m).__name__))),
        net.register_state_dict_post_hook(lambda m, state, prefix, meta: state.update(note=torch.ones(1))),
        net.register_load_state_dict_post_hook(lambda m, keys: log.append(("load", list(keys.unexpected_keys)))),
    ]
    x = torch.randn(2, 4, requires_grad=True)
    net(x).sum().backward()
    print(*log, sep="\n")
    print(f"{x.grad.norm().item():.5f}", sorted(net.state_dict()))
    state = net.state_dict()
    log.clear()
    net.load_state_dict(state, strict=False)
    print(log)
    for handle in handles:
        handle.remove()
    print(len(net[0]._forward_hooks), len(net.state_dict()))


def nodes():
    a = torch.tensor([1.0, 2.0], requires_grad=True)
    b = torch.tensor([3.0, 4.0], requires_grad=True)
    h = a.register_hook(lambda g: g * 2)
    c = a * b
    c.retain_grad()
    order = []
    c.grad_fn.register_hook(lambda gi, go: order.append(("node", [None if g is None else g.tolist() for g in gi])))
    c.grad_fn.register_prehook(lambda go: order.append(("before", go[0].tolist())))
    multi = torch.autograd.graph.register_multi_grad_hook((a, b), lambda grads: order.append(("multi", [g is not None for g in grads])))
    d = c.sum()
    d.backward(retain_graph=True)
    print(*order, a.grad.tolist(), b.grad.tolist(), c.grad.tolist())
    multi.remove()
    h.remove()
    print([type(fn).__name__ for fn, _ in d.grad_fn.next_functions], torch.autograd.graph.get_gradient_edge(c).output_nr)
    inputs = torch.autograd.graph.get_gradient_edge(a)
    print(torch.autograd.grad(d, inputs)[0].tolist())
    with torch.autograd.set_detect_anomaly(True), torch.autograd.graph.allow_mutation_on_saved_tensors():
        e = a.clone()
        f = e**2
        e.mul_(10)
        f.sum().backward()
    print(a.grad.tolist(), e._version)


def main():
    torch.manual_seed(12)
    optimizer_in_backward()
    saved_on_disk()
    modules()
    nodes()


if __name__ == "__main__":
    main()
