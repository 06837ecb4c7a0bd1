"""`python -m tools.site.charts`: draws docs/charts/*.svg, light and dark, from the runs in docs/benchmarks; tests/test_pages.py compares them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tensorrt_lite.bench import report, svg

ROOT = Path(__file__).resolve().parent.parent.parent
AXIS = "time of tensorrt_lite over time of PyTorch, below 1 is faster (median, quartiles)"
# Name of the chart: title, run, suite, threads.
SUITES = {
    "overhead": ("What a call costs: small operators", "overhead", "overhead", 2),
    "layers": ("Layers, one thread", "gemm_nn_conv", "nn", 1),
    "products": ("Matrix products, one thread", "gemm_nn_conv", "gemm", 1),
    "convolutions": ("Convolutions, one thread", "gemm_nn_conv", "conv", 1),
    "pointwise": ("Pointwise operators, one thread", "pointwise_reduction", "pointwise", 1),
    "sorting": ("Sorting, one thread", "pointwise_reduction", "sorting", 1),
}
# A row of the first chart: what it says, run, name of the row.
HEADLINE = (
    ("import", "startup", "import"),
    ("memory after the import", "startup", "memory after import"),
    ("a small operator", "overhead", "add, 4 elements"),
    ("a training step of a small MLP", "overhead", "MLP training step, batch 4"),
    ("a training step of a CNN on 8x8 images", "train", "digits CNN, batch 64"),
    ("a training step of a GPT of 6 layers", "train", "char GPT 6 layers, width 384, batch 16x256"),
)


def run(name: str) -> dict[str, Any]:
    return report.load(ROOT / "docs" / "benchmarks" / f"{name}.json")


def headline() -> list[svg.Bar]:
    """The bars of the first chart of README, each a row of a saved run."""
    made = []
    for said, source, name in HEADLINE:
        [row] = [r for r in run(source)["rows"] if r["name"] == name]
        made.append(svg.bars([row], "torch")[0]._replace(name=said))
    return made


def memory() -> list[svg.Bar]:
    """Peak memory of whole programs over PyTorch's, above that of the started process; programs of less than 20 MB in PyTorch are left out."""
    rows = json.loads((ROOT / "docs" / "benchmarks" / "memory.json").read_text(encoding="utf-8"))["rows"]
    ratios = {name: row["tensorrt_lite"]["peak"] / row["torch"]["peak"] for name, row in rows.items() if row["torch"]["peak"] >= 20}
    return [svg.Bar(name.replace("_", " "), ratio, ratio, ratio) for name, ratio in sorted(ratios.items(), key=lambda item: item[1])]


def charts() -> dict[str, str]:
    """The text of every chart by its file's name."""
    drawn: dict[str, tuple[list[svg.Bar], str, str]] = {
        "headline": (headline(), "tensorrt_lite over PyTorch 2.13", "time or memory of tensorrt_lite over PyTorch's, below 1 is less")
    }
    sources = [row for name in ("gemm_nn_conv", "pointwise_reduction", "overhead", "train") for row in run(name)["rows"]]
    drawn["summary"] = (svg.summary(sources, "torch"), "All rows by suite", "time over PyTorch's: geometric mean, quartiles among the rows")
    for name, (title, source, suite, threads) in SUITES.items():
        drawn[name] = (svg.bars([r for r in run(source)["rows"] if (r["suite"], r["threads"]) == (suite, threads)], "torch"), title, AXIS)
    drawn["memory"] = (memory(), "Peak memory of whole programs", "peak memory of tensorrt_lite over PyTorch's, below 1 is less")
    return {f"{name}-{theme}.svg": svg.svg(bars, title, axis, theme) for name, (bars, title, axis) in drawn.items() for theme in svg.THEMES}


def main() -> None:
    folder = ROOT / "docs" / "charts"
    folder.mkdir(exist_ok=True)
    for name, text in charts().items():
        (folder / name).write_text(text, encoding="utf-8")
    print(f"{len(charts())} charts in {folder}")


if __name__ == "__main__":
    main()
