"""A profile as a flame graph: one SVG file that needs no other. Width is time, what lies below is what called it; frames of Python where stacks were
recorded, then the events' own nesting. Pointing at a bar names it, a click magnifies it."""

from __future__ import annotations

import html
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tensorrt_lite.autograd.profiler_util import FunctionEvent

_WIDTH, _ROW, _HEAD = 1200, 18, 48
_LEAST = 0.3  # pixels below which a bar is left out
_SCRIPT = """
const all = [...document.querySelectorAll('g.bar')], width = 1200;
function show(x, w) {
  for (const g of all) {
    const a = (+g.dataset.x - x) / w * width, b = +g.dataset.w / w * width, r = g.querySelector('rect'), t = g.querySelector('text');
    const outside = a + b < 0.1 || a > width - 0.1;
    g.style.display = outside ? 'none' : '';
    if (outside) continue;
    const left = Math.max(a, 0), right = Math.min(a + b, width);
    r.setAttribute('x', left); r.setAttribute('width', Math.max(right - left - 0.5, 0.3));
    const letters = Math.floor((right - left - 6) / 6.6), name = g.dataset.name;
    t.setAttribute('x', left + 3);
    t.textContent = letters < 3 ? '' : name.length <= letters ? name : name.slice(0, letters - 1) + '\\u2026';
  }
}
for (const g of all) g.addEventListener('click', e => { show(+g.dataset.x, +g.dataset.w); e.stopPropagation(); });
document.documentElement.addEventListener('click', () => show(0, width));
show(0, width);
"""


class _Bar:
    __slots__ = ("below", "calls", "name", "time")

    def __init__(self, name: str) -> None:
        self.name, self.time, self.calls = name, 0.0, 0
        self.below: dict[str, _Bar] = {}

    def child(self, name: str) -> _Bar:
        if name not in self.below:
            self.below[name] = _Bar(name)
        return self.below[name]


def is_call(event: FunctionEvent) -> bool:
    """Whether an event is the call of a Python function, which the stacks of operators name with their lines."""
    return event.is_python_function and not event.name.startswith("nn.Module: ")


def _without_calls(event: FunctionEvent | None) -> FunctionEvent | None:
    while event is not None and is_call(event):
        event = event.cpu_parent
    return event


def _tree(events: list[FunctionEvent]) -> _Bar:
    root = _Bar("all")
    for event in events:
        own = event.self_cpu_time_total
        if own <= 0:
            continue
        path: list[str] = []
        at: FunctionEvent | None = _without_calls(event)
        if at is None:
            continue
        outermost = at
        while at is not None:
            path.append(at.name)
            outermost, at = at, _without_calls(at.cpu_parent)
        path += outermost.stack  # innermost first, as the path is
        bar = root
        bar.time += own
        for name in reversed(path):
            bar = bar.child(name)
            bar.time += own
        bar.calls += not is_call(event)
    return root


def write_flame_graph(path: str, events: list[FunctionEvent], title: str = "Flame graph of a profile") -> None:
    """Write the graph of CPU time."""
    root = _tree(events)
    bars: list[tuple[_Bar, float, float, int]] = []
    pending = [(root, 0.0, float(_WIDTH), 0)]
    deepest = 0
    while pending:
        bar, x, width, depth = pending.pop()
        if width < _LEAST:
            continue
        bars.append((bar, x, width, depth))
        deepest = max(deepest, depth)
        for below in sorted(bar.below.values(), key=lambda b: -b.time):
            share = width * below.time / bar.time if bar.time else 0.0
            pending.append((below, x, share, depth + 1))
            x += share
    height = _HEAD + (deepest + 1) * _ROW + 10
    with open(path, "w", encoding="utf-8") as file:
        file.write(
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" font-family="monospace" font-size="11">\n'
            f'<rect width="100%" height="100%" fill="#fff"/><text x="{_WIDTH / 2}" y="20" font-size="16" text-anchor="middle">{html.escape(title)}</text>'
            f'<text x="{_WIDTH / 2}" y="38" fill="#555" text-anchor="middle">{root.time / 1e3:.3f} ms of CPU time; a click magnifies, a click beside shows all</text>\n'
        )
        for bar, x, width, depth in bars:
            name = html.escape(bar.name, quote=True)
            y = _HEAD + depth * _ROW
            share = 100 * bar.time / root.time if root.time else 0.0
            tip = f"{name}\n{bar.time / 1e3:.3f} ms, {share:.2f} %"
            letters = int((width - 6) / 6.6)
            shown = "" if letters < 3 else bar.name if len(bar.name) <= letters else bar.name[: letters - 1] + "\u2026"
            file.write(
                f'<g class="bar" data-x="{x:.3f}" data-w="{width:.3f}" data-name="{name}"><title>{tip}</title>'
                f'<rect x="{x:.2f}" y="{y}" width="{max(width - 0.5, 0.3):.2f}" height="{_ROW - 1}" fill="{_colour(bar.name)}" rx="2"/>'
                f'<text x="{x + 3:.2f}" y="{y + 12}">{html.escape(shown)}</text></g>\n'
            )
        file.write(f"<script><![CDATA[{_SCRIPT}]]></script>\n</svg>\n")


def _colour(name: str) -> str:
    """Operators warm, backward Nodes violet, ranges of the program green, Python blue; one name has one shade."""
    shade = zlib.crc32(name.encode()) % 40
    if name.startswith("aten::") or "::" in name and "(" not in name:
        return f"hsl({15 + shade}, 85%, 65%)"
    if name.endswith("Backward0") or "Backward" in name:
        return f"hsl({270 + shade // 2}, 55%, 75%)"
    if "): " in name:
        return f"hsl({195 + shade // 2}, 60%, 72%)"
    return f"hsl({100 + shade}, 45%, 70%)"
