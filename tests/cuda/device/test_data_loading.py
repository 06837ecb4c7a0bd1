"""Loaders that pin their batches, in the process and by workers of a process that has used CUDA."""

from __future__ import annotations

import collections

import pytest

import tensorrt_lite as trt
from tensorrt_lite.utils.data import DataLoader
from tensorrt_lite.utils.data._utils.pin_memory import pin_memory

point = collections.namedtuple("point", "x y")


class Custom:
    def __init__(self, x):
        self.x = x

    def pin_memory(self):
        return Custom(self.x.pin_memory())


def structured(samples):
    x = trt.stack(samples)
    return {"x": x, "pair": [x + 1, (x + 2, "text")], "point": point(x, 3), "own": Custom(x)}


@pytest.mark.parametrize("options", [{}, {"num_workers": 2}, {"num_workers": 2, "worker_threads": True}, {"num_workers": 1, "persistent_workers": True}])
def test_batches_lie_in_page_locked_memory(options):
    trt.ones(3, device="cuda").sum().item()
    data = [trt.full((200, 50), float(i)) for i in range(6)]
    for _ in range(2):
        loader = DataLoader(data, 2, pin_memory=True, collate_fn=structured, **options)
        for place, batch in enumerate(loader):
            assert type(batch["point"]) is point and batch["pair"][1][1] == "text"
            for x in (batch["x"], batch["pair"][0] - 1, batch["point"].x, batch["own"].x):
                assert x[:, 0, 0].tolist() == [2 * place, 2 * place + 1]
            assert batch["x"].is_pinned() and batch["pair"][0].is_pinned() and batch["pair"][1][0].is_pinned() and batch["own"].x.is_pinned()
        assert place == 2


def test_errors_pass_the_pinning_thread():
    class Broken:
        def __len__(self):
            return 2

        def __getitem__(self, index):
            raise OSError("gone")

    with pytest.raises(OSError, match="Caught OSError in DataLoader worker process 0"):
        list(DataLoader(Broken(), num_workers=2, pin_memory=True))

    class Unpinnable:
        def pin_memory(self):
            raise LookupError("no pages")

    with pytest.raises(LookupError, match="in pin memory thread for device 0"):
        list(DataLoader([0], num_workers=1, worker_threads=True, pin_memory=True, collate_fn=lambda _: Unpinnable()))
    assert pin_memory("text") == "text" and pin_memory(3) == 3
