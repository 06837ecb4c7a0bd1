"""CUDA tensors and events between processes."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import textwrap

import pytest

import tensorrt_lite as trt

cuda = trt.cuda


def run(tmp_path, program, **environment):
    """A program of several processes in a file of its own, as spawned processes import it; what it prints."""
    path = tmp_path / "program.py"
    path.write_text("import gc, tensorrt_lite as trt\nimport tensorrt_lite.multiprocessing as mp\ncuda = trt.cuda\n" + textwrap.dedent(program))
    environment = {k: v for k, v in os.environ.items() if "ALLOC_CONF" not in k} | environment
    result = subprocess.run([sys.executable, str(path)], env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout + result.stderr


def test_processes_share_memory(tmp_path):
    """One memory, counted references, order by events, and what must not be sent."""
    run(tmp_path, """
        def child(inbox, outbox):
            tensors = inbox.get()
            x, part, parameter, empty, host = tensors
            assert x.is_cuda and part.stride() == (1, 20) and part.storage_offset() == 3 and parameter.requires_grad and isinstance(parameter, trt.nn.Parameter)
            assert x.data_ptr() + 12 == part.data_ptr() and empty.shape == (0, 3) and host.tolist() == [1.0, 2.0]
            outbox.put((x.tolist(), part.tolist()))
            x.mul_(2)
            cuda.synchronize()
            outbox.put("written")
            try:
                mp.reductions.reduce_tensor(x)
            except RuntimeError as error:
                outbox.put(str(error))
            assert inbox.get() == "let go"
            tensors = x = part = parameter = None
            gc.collect()
            outbox.put("gone")
            assert inbox.get() == "stop"

        if __name__ == "__main__":
            context = mp.get_context("spawn")
            inbox, outbox = context.Queue(), context.Queue()
            process = context.Process(target=child, args=(inbox, outbox))
            process.start()
            other = trt.zeros(1000, device="cuda")
            side = cuda.Stream()
            with cuda.stream(side):
                x = trt.zeros(200, device="cuda")
                for _ in range(20):
                    x.add_(1)                                   # may not have run when x is sent
                part = x.as_strided((5, 4), (1, 20), 3)
                inbox.put((x, part, trt.nn.Parameter(x[:4]), trt.empty(0, 3, device="cuda"), trt.tensor([1.0, 2.0])))
                values, parts = outbox.get(timeout=60)
            assert values == [20.0] * 200 and parts == [[20.0] * 4] * 5
            assert outbox.get(timeout=60) == "written"
            assert x.tolist() == [40.0] * 200 and other.sum().item() == 0
            assert "received from another process" in outbox.get(timeout=60)
            before = cuda.memory_allocated()
            address = x.data_ptr()
            del x, part
            gc.collect()
            cuda.ipc_collect()
            assert cuda.memory_allocated() == before            # the receiver has it
            with cuda.stream(side):
                assert trt.empty(200, device="cuda").data_ptr() != address
            inbox.put("let go")
            assert outbox.get(timeout=60) == "gone"
            cuda.ipc_collect()
            assert cuda.memory_allocated() == before - 1024
            with cuda.stream(side):
                assert trt.empty(200, device="cuda").data_ptr() == address
            inbox.put("stop")
            process.join(60)
            assert process.exitcode == 0
    """, CUEMU_STREAMS="late")  # fmt: skip


def test_a_sender_that_ends_first_warns(tmp_path):
    said = run(tmp_path, """
        x = trt.ones(10, device="cuda")
        mp.reductions.reduce_tensor(x)
    """)  # fmt: skip
    assert "Producer process has been terminated before all shared CUDA tensors released" in said


def test_memory_that_cannot_be_sent(tmp_path):
    import tensorrt_lite.multiprocessing as mp

    x = trt.ones(3, device="cuda", requires_grad=True)
    with pytest.raises(RuntimeError, match="Cowardly refusing"):
        mp.reductions.reduce_tensor(x * 2)
    with pytest.raises(RuntimeError, match="or library"):
        mp.reductions.reduce_tensor(trt.from_dlpack(x.detach()))
    run(tmp_path, """
        try:
            mp.reductions.reduce_tensor(trt.ones(10, device="cuda"))
            raise AssertionError
        except RuntimeError as error:
            assert "expandable segment" in str(error)
    """, PYTORCH_ALLOC_CONF="expandable_segments:True")  # fmt: skip
    assert x.is_shared() and x.share_memory_() is x and not trt.ones(1).is_shared()


def test_events_have_handles(tmp_path):
    """For other processes: the driver refuses the one that made the event."""
    event = cuda.Event(interprocess=True)
    event.record()
    assert len(event.ipc_handle()) == 64
    with pytest.raises(RuntimeError, match="invalid device context"):
        cuda.Event.from_ipc_handle(trt.device("cuda", 0), event.ipc_handle())
    run(tmp_path, """
        def child(inbox, outbox):
            event = inbox.get()
            assert isinstance(event, cuda.Event)
            event.wait()
            event.synchronize()
            outbox.put(event.query())

        if __name__ == "__main__":
            context = mp.get_context("spawn")
            inbox, outbox = context.Queue(), context.Queue()
            process = context.Process(target=child, args=(inbox, outbox))
            process.start()
            event = cuda.Event(interprocess=True)
            x = trt.ones(1000, device="cuda") + 1
            event.record()
            inbox.put(event)
            assert outbox.get(timeout=60) is True
            process.join()
            assert process.exitcode == 0
    """)  # fmt: skip
    with pytest.raises(RuntimeError, match="interprocess"):
        cuda.Event().ipc_handle()
    with pytest.raises(RuntimeError, match="interprocess"):
        pickle.dumps(cuda.Event())
    with pytest.raises(TypeError, match="cannot pickle 'Stream'"):
        pickle.dumps(cuda.Stream())
    with pytest.raises(ValueError, match="exclude"):
        cuda.Event(enable_timing=True, interprocess=True)


def test_a_forked_process_cannot_use_cuda(tmp_path):
    run(tmp_path, """
        import os
        x = trt.ones(3, device="cuda")
        child = os.fork()
        if child == 0:
            for call in (lambda: trt.ones(2, device="cuda"), lambda: x + 1, cuda.synchronize):
                try:
                    call()
                    os._exit(1)
                except RuntimeError as error:
                    if "forked subprocess" not in str(error):
                        os._exit(2)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert (x + 1).tolist() == [2.0] * 3
    """)  # fmt: skip
