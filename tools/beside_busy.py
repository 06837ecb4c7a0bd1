"""A command beside processes that compute without end, as on a machine that others use.

    python -m tools.beside_busy [--processes 2] [--times 3] -- make test

They are of the command's own session: Linux shares the processor out between sessions first (`sched_autogroup_enabled`), so that two of sessions of their own would
take two thirds of it from a command of any number of processes. Ends with the command's first status other than 0; prints how long each run
took, and the share of the processor that the busy processes had.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import subprocess
import sys
import time


def compute() -> None:
    while True:
        sum(range(10_000))


def start_busy(count: int) -> list[int]:
    """The ids of processes that end with this one."""
    pids = []
    for _ in range(count):
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            parent = os.getppid()
            signal.signal(signal.SIGALRM, lambda *_: os._exit(0) if os.getppid() != parent else None)
            signal.setitimer(signal.ITIMER_REAL, 1, 1)
            compute()
        pids.append(pid)
    return pids


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.beside_busy", description=__doc__.split("\n")[0])
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--times", type=int, default=1, help="runs of the command; the first that fails is the last")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args(argv)
    status = 0
    for number in range(1, options.times + 1):
        busy = start_busy(options.processes)
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        try:
            status = subprocess.run(options.command).returncode
        finally:
            seconds, command = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
            for pid in busy:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        own = command.ru_utime + command.ru_stime - before.ru_utime - before.ru_stime
        others = after.ru_utime + after.ru_stime - command.ru_utime - command.ru_stime
        print(f"run {number} of {options.times}: status {status}, {seconds:.0f} s, of which the command computed {own:.0f} s and {options.processes} busy processes {others:.0f} s", flush=True)
        if status:
            break
    return status


if __name__ == "__main__":
    sys.exit(main())
