"""Full backward hooks of modules at the edges, stated once and checked on both libraries."""

import warnings

import pytest
import torch

import tensorrt_lite as trt

LIBRARIES = pytest.mark.parametrize("lib", [trt, torch], ids=["ours", "PyTorch"])


def recorder(seen):
    def hook(module, grad_input, grad_output):
        seen.append([None if g is None else g.flatten().tolist() for g in (*grad_input, *grad_output)])

    return hook


@LIBRARIES
def test_double_backward_past_the_outputs(lib):
    """The second pass reaches the inputs without passing the outputs of every module: nothing is called for those."""
    seen, model = [], lib.nn.Sequential(lib.nn.Linear(2, 4), lib.nn.Tanh(), lib.nn.Linear(4, 1))
    for layer in model:
        layer.weight.data.fill_(0.5) if hasattr(layer, "weight") else None
        layer.register_full_backward_hook(recorder(seen))
    z = lib.ones(3, 2, requires_grad=True)
    (g,) = lib.autograd.grad(model(z).sum(), z, create_graph=True)
    assert len(seen) == 3
    g.pow(2).sum().backward()
    assert len(seen) == 4 and z.grad.abs().sum() > 0


@LIBRARIES
@pytest.mark.parametrize("wrap", [lambda y: {"logits": y}, lambda y: [y], lambda y: ([y],)], ids=["dict", "list", "nested tuple"])
def test_outputs_inside_of_other_objects(lib, wrap):
    class Model(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = lib.nn.Linear(2, 2)

        def forward(self, x):
            return wrap(self.layer(x))

    seen, model, x = [], Model(), lib.ones(1, 2, requires_grad=True)
    model.register_full_backward_hook(recorder(seen))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        y = model(x)
    assert [w for w in caught if "module output should be a Tensor or a tuple of Tensors" in str(w.message)] or isinstance(y, tuple)
    while not isinstance(y, lib.Tensor):
        y = y["logits"] if isinstance(y, dict) else y[0]
    y.sum().backward()
    assert seen == [] and x.grad is not None


@LIBRARIES
def test_inputs_without_gradients(lib):
    """grad_input holds None for each input, and PyTorch says that it does."""
    seen, layer = [], lib.nn.Bilinear(2, 2, 1)
    layer.register_full_backward_hook(recorder(seen))
    layer.register_full_backward_hook(lambda module, grad_input, grad_output: (None, None))
    with pytest.warns(UserWarning, match="no inputs require gradients"):
        layer(lib.ones(1, 2), lib.ones(1, 2)).sum().backward()
    assert seen == [[None, None, [1.0]]]


@LIBRARIES
def test_hooks_of_tensors_run_before_those_of_their_node(lib):
    seen, q = [], lib.ones(2, requires_grad=True) * 3
    q.grad_fn.register_prehook(lambda grads: seen.append(("node", grads[0].tolist())))
    q.retain_grad()
    for name in ("first", "second"):
        q.register_hook(lambda grad, name=name: (seen.append((name, grad.tolist())), grad * 2)[1])
    q.sum().backward()
    assert seen == [("first", [1, 1]), ("second", [2, 2]), ("node", [4, 4])] and q.grad.tolist() == [4, 4]
