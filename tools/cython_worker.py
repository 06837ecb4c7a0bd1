"""A process that translates Cython modules one after another, so that the compiler is imported once and not per module.

Reads one JSON list of `cython` arguments per line and answers one JSON object {"ok": bool, "text": diagnostics, "seconds": processor time}.
"""

from __future__ import annotations

import contextlib
import gc
import io
import json
import sys
import time
import traceback

from Cython.Compiler.Main import main as cython_main

LIVE = 2_000_000  # objects made since the last collection, some 500 MB: then the trees of the modules before are collected


def translate(arguments: list[str]) -> dict[str, object]:
    text = io.StringIO()
    start = time.process_time()
    sys.argv = ["cython", *arguments]
    try:
        with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
            cython_main(command_line=1)
        ok = True
    except SystemExit as end:
        ok = not end.code
    except Exception:
        ok = False
        text.write(traceback.format_exc())
    return {"ok": ok, "text": text.getvalue()[-8000:], "seconds": time.process_time() - start}


if __name__ == "__main__":
    gc.disable()  # a syntax tree lives until its module is written: looking for garbage in it took half of the time
    for line in sys.stdin:
        print(json.dumps(translate(json.loads(line))), flush=True)
        if gc.get_count()[0] > LIVE:
            gc.collect()
