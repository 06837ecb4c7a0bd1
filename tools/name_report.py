"""Which public names of PyTorch are here, by module, and whether a call of each gives PyTorch's result: `python -m tools.name_report` writes docs/names.md.

Needs PyTorch. A name counts where it is here and its call in tests/names agrees with PyTorch's; the rest is listed with a reason.
"""

from __future__ import annotations

import re
import sys
import warnings
from pathlib import Path

TARGET = Path(__file__).resolve().parent.parent / "docs" / "names.md"

# Why names are not here: the first pattern that fits.
REASONS = (
    (r"(^|_)quant|^q_|^qint|^quint|^Q[IU]|qscheme|^per_(tensor|channel)|int_repr|qparams|fake_quant|^fbgemm", "quantized tensors are not here"),
    (r"^u?int[1-7]$|^bits?\d|^float4|^bit$", "no element types of less than eight bits"),
    (r"^(cudnn|miopen|mkldnn)_|to_mkldnn", "an entry of another library's kernels, which are not used here"),
    (r"ipu|xla", "devices that are not here"),
    (r"^batch_norm_", "steps of CUDA's batch norm over processes"),
    (r"^jagged$|padded", "nested tensors"),
    (r"^compile$", "no compiler"),
    (r"^index$", "first-class dimensions (`functorch.dim`)"),
    (r"grad_dtype", "gradients have their leaf's dtype"),
    (r"", "private in all but name"),
)


def reason(name: str) -> str:
    return next(text for pattern, text in REASONS if re.search(pattern, name))


def main() -> int:
    """Run all calls and write the page; exit status 1 where a result differs."""
    warnings.simplefilter("ignore")
    import tensorrt_lite as trt
    import torch

    from tests.names import compare, signatures, surface

    rows, absent, unlike, differing, uncalled, left_out = [], [], [], [], [], []
    for module in surface.MODULES:
        counted, others = surface.names(torch, module)
        space = surface.owner(trt, module)
        here = [n for n in counted if hasattr(space, n)]
        called = set(compare.callable_names(module))
        wrong = {n: text for n in here if n in called and (text := compare.run(trt, module, n))}
        agreed = [n for n in here if n in called and n not in wrong]
        compared = {n: d for n in here if (d := signatures.difference(trt, module, n)) is not None}
        same = sum(not d for d in compared.values())
        rows.append(
            f"| `{module}` | {len(counted)} | {len(here)} | {len(agreed)} | {100 * len(agreed) / len(counted):.1f} % | {same} of {len(compared)} |"
        )
        by_reason: dict[str, list[str]] = {}
        for n in counted:
            if n not in here:
                by_reason.setdefault(reason(n), []).append(f"`{n}`")
        absent += [f"- `{module}`, {text}: {', '.join(found)}." for text, found in by_reason.items()]
        differing += [f"- `{module}.{n}`: {text[:160]}" for n, text in wrong.items()]
        uncalled += [f"`{module}.{n}`" for n in here if n not in called]
        unlike += [f"- `{module}.{n}`: {d}" for n, d in compared.items() if d]
        if module == "torch":
            left_out = [f"`{n}`" for n in others]
        print(rows[-1], flush=True)
    page = f"""# Names

The public names of PyTorch {torch.__version__.partition("+")[0]}'s modules beside this package's, written by `python -m tools.name_report`. A name is *here* where it can be looked up, and it
*agrees* where a call of it, the same in both libraries, gives the same result: two thirds of the calls are samples of PyTorch's own databases of operators and modules, the
others stand in `tests/names`, which runs all of them. *Signatures* are those that PyTorch writes in Python, compared by names, order and defaults of their
parameters; those of compiled functions are compared with PyTorch's schemas (`tests/test_declarations.py`).

| module | PyTorch's | here | agree | of PyTorch's | signatures |
|---|---|---|---|---|---|
{chr(10).join(rows)}

Counted are the names of a module's `__all__` and what it defines besides. Not counted are modules, imports of the standard library, texts of docstrings, and what
`torch` has from `torch._C` through pybind11 (the classes of TorchScript's compiler).

## Not here

{chr(10).join(absent)}

## Results that differ

{chr(10).join(differing) or "None."}

## Here without a call that compares

{", ".join(uncalled) or "None."}

## Signatures that differ

{chr(10).join(unlike) or "None."}

## Names of `torch` that are not counted

{", ".join(left_out)}.
"""
    TARGET.write_text(page, encoding="utf-8")
    return int(bool(differing))


if __name__ == "__main__":
    sys.exit(main())
