"""A program as a user of a type checker would write it; checked against the installed stubs, never run."""

from collections.abc import Iterator
from typing import Any, assert_type

import tensorrt_lite as trt
from tensorrt_lite import nn
from tensorrt_lite.nn import functional as F
from tensorrt_lite.utils.data import DataLoader, Dataset, Subset, TensorDataset, random_split


def step(model: nn.Module, x: trt.Tensor, y: trt.Tensor) -> float:
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    return float(loss)


a = trt.ones(2, 3, dtype=trt.float32)
b = trt.add(a, 1)
assert_type(b, trt.Tensor)
assert_type(a + b, trt.Tensor)
assert_type(2 * a, trt.Tensor)
assert_type(a.relu().exp_(), trt.Tensor)
assert_type(a[0], trt.Tensor)
assert_type(a.dtype, trt.dtype)
assert_type(a.numel(), int)
assert_type(a.grad, trt.Tensor | None)
with trt.no_grad():
    c = a.sigmoid()
for row in c:
    assert_type(row, trt.Tensor)


class Net(nn.Module):
    """A forward of any signature overrides Module's, and the attributes of layers have types."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Linear(4, width)
        self.norm = nn.BatchNorm1d(width)
        self.layers = nn.ModuleList([nn.Linear(width, width)])
        self.scale = nn.Parameter(trt.ones(1))

    def forward(self, x: trt.Tensor, mask: trt.Tensor | None = None, *, steps: int = 1) -> trt.Tensor:
        for layer in self.layers:
            x = layer(x)
        return F.relu(self.norm(self.first(x))) * self.scale


class Square(trt.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: trt.Tensor) -> trt.Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, gradient: trt.Tensor) -> trt.Tensor:
        x: trt.Tensor = ctx.saved_tensors[0]
        return 2 * x * gradient


class Numbers(Dataset):
    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: int) -> trt.Tensor:
        return trt.tensor(index)


@trt.no_grad()
def evaluate(model: nn.Module, x: trt.Tensor) -> float:
    return float(model(x).sum())


@trt.no_grad
def predict(model: nn.Module, x: trt.Tensor) -> list[int]:
    return [int(i) for i in model(x).argmax(1)]


@trt.inference_mode()
def batches(x: trt.Tensor) -> Iterator[trt.Tensor]:
    yield from x.split(2)


net = Net(8)
assert_type(evaluate(net, a), float)
assert_type(predict(net, a), list[int])
for part in batches(a):
    assert_type(part, trt.Tensor)
assert_type(net.first.weight, nn.Parameter)
assert_type(nn.Conv2d(1, 2, 3).weight, nn.Parameter)
assert_type(net.first.in_features, int)
assert_type(net.eval().train(), Net)
assert_type(next(iter(net.parameters())), nn.Parameter)
assert_type(nn.Sequential(net, nn.ReLU())[0], nn.Module)
assert_type(trt.autograd.gradcheck(Square.apply, (a,)), bool)

assert_type(a.size(), trt.Size)
assert_type(a.size(0), int)
assert_type(a.shape[0], int)
assert_type(a.stride(0), int)
assert_type(a.to("cpu", trt.float64), trt.Tensor)
assert_type(a.float().double().long().half().bool().int(), trt.Tensor)
assert_type(a.cpu().contiguous().clone().detach(), trt.Tensor)
assert_type(a.item(), bool | int | float)
assert_type(a.max(), trt.Tensor)
values, indices = a.max(0)
assert_type(values, trt.Tensor)
assert_type(a.sort().indices, trt.Tensor)
assert_type(a.topk(2)[0], trt.Tensor)
assert_type(a.split(1), tuple[trt.Tensor, ...])
assert_type(a.chunk(2), tuple[trt.Tensor, ...])
assert_type(a.unbind(), tuple[trt.Tensor, ...])
assert_type(a.view(3, -1).reshape(6).transpose(0, 0).permute(0).flatten(), trt.Tensor)
assert_type(a.sum(1, keepdim=True).mean(), trt.Tensor)
assert_type(trt.max(a, 1).values, trt.Tensor)
assert_type(trt.cat([a, a], dim=1), trt.Tensor)
assert_type(trt.stack((a, a)), trt.Tensor)
assert_type(trt.where(a > 0, a, 0.0), trt.Tensor)
assert_type(trt.einsum("ij,jk->ik", a, a), trt.Tensor)
assert_type(F.relu(a), trt.Tensor)
assert_type(F.gelu(F.dropout(a, 0.1, training=True)), trt.Tensor)
assert_type(F.cross_entropy(a, trt.tensor([0, 1])), trt.Tensor)
assert_type(F.softmax(a, dim=-1), trt.Tensor)
assert_type(trt.linalg.norm(trt.linalg.cholesky(a)), trt.Tensor)
assert_type(trt.linalg.solve(a, a), trt.Tensor)
assert_type(trt.linalg.solve_triangular(a, a, upper=True), trt.Tensor)
assert_type(trt.linalg.matrix_norm(a), trt.Tensor)

with trt.device("cpu"):
    pass
with trt.autograd.set_detect_anomaly(True), trt.autocast("cpu", enabled=False):
    pass

first, second = random_split(TensorDataset(a, a), [1, 1])
assert_type(first, Subset)
for x, y in Subset(TensorDataset(a, a), [0]):
    print(x, y)
for batch in DataLoader(Numbers(), batch_size=2, shuffle=True, num_workers=0):
    print(batch)
optimizer = trt.optim.Adam(net.parameters(), lr=1e-3)
scheduler = trt.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=10)
scheduler.step()
nn.utils.clip_grad_norm_(net.parameters(), 1.0)
trt.save(net.state_dict(), "net.pt")
net.load_state_dict(trt.load("net.pt", map_location="cpu"))
assert_type(trt.distributed.is_available(), bool)

trt.add("x", 1)  # type: ignore[arg-type]  # an error that a checker must see
a.exp(1, 2, 3)  # type: ignore[call-arg]
a.expp()  # type: ignore[attr-defined]
trt.compile(net)  # type: ignore[attr-defined]


def calls_of_several_overloads(x: trt.Tensor) -> None:
    assert_type(trt.randint(10, (2, 3)), trt.Tensor)
    assert_type(trt.randint(0, 10, (2, 3)), trt.Tensor)
    assert_type(trt.arange(5), trt.Tensor)
    assert_type(trt.zeros((2, 3)), trt.Tensor)
    assert_type(x.new_zeros(2, 3), trt.Tensor)
    assert_type(x.repeat_interleave(2), trt.Tensor)
    assert_type(trt.as_tensor([1, 2]), trt.Tensor)
    assert_type(trt.tensor([[1.0], [2.0]]), trt.Tensor)
    assert_type(x.tile((2, 2)).repeat(1, 2).permute(1, 0), trt.Tensor)
    assert_type(trt.linalg.norm(x, "fro"), trt.Tensor)
    assert_type(trt.full((2,), x), trt.Tensor)
    assert_type(trt.quantile(x, 0.5), trt.Tensor)
    assert_type(trt.allclose(x, x), bool)
    assert_type(trt.meshgrid(x, x, indexing="ij"), tuple[trt.Tensor, ...])
