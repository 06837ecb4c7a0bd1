"""The memory in use over the time of a profile: as JSON, as raw changes, or as one HTML file that draws itself."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tensorrt_lite.profiler._events import Profile

_PAGE = """<!DOCTYPE html>
<html><head><meta charset="utf-8"><title>Memory of a profile</title>
<style>
 body { font: 14px system-ui, sans-serif; margin: 24px; color: #222; }
 canvas { border: 1px solid #ccc; width: 100%; height: 420px; cursor: crosshair; }
 #tip { min-height: 1.4em; color: #444; } table { border-collapse: collapse; margin-top: 16px; }
 td, th { padding: 3px 12px; text-align: right; border-bottom: 1px solid #eee; } td:first-child, th:first-child { text-align: left; }
</style></head><body>
<h1>Memory in use</h1>
<p>Peak <b id="peak"></b> at <b id="when"></b>; what the allocator held, and at the peak by the operator that took it.</p>
<canvas id="plot"></canvas><p id="tip"></p>
<table><thead><tr><th>taken in</th><th>bytes at the peak</th><th>blocks</th></tr></thead><tbody id="rows"></tbody></table>
<script>
const data = /*DATA*/;
const size = n => n >= 2**30 ? (n / 2**30).toFixed(2) + " GB" : n >= 2**20 ? (n / 2**20).toFixed(2) + " MB" : n >= 1024 ? (n / 1024).toFixed(2) + " KB" : n + " B";
const times = data.times, bytes = data.bytes, canvas = document.getElementById("plot"), most = bytes.reduce((a, b) => Math.max(a, b), 1);
const span = Math.max(times[times.length - 1] || 1, 1e-9);
document.getElementById("peak").textContent = size(data.peak);
document.getElementById("when").textContent = (data.peak_time / 1e3).toFixed(3) + " ms";
for (const [name, n, blocks] of data.at_peak) {
  const row = document.getElementById("rows").insertRow();
  for (const text of [name, size(n), blocks]) row.insertCell().textContent = text;
}
function draw(mark) {
  const w = canvas.width = canvas.clientWidth * devicePixelRatio, h = canvas.height = canvas.clientHeight * devicePixelRatio, c = canvas.getContext("2d");
  c.beginPath(); c.moveTo(0, h);
  let last = 0;
  for (let i = 0; i < times.length; i++) {
    const x = times[i] / span * w;
    c.lineTo(x, h - last / most * h * 0.95); c.lineTo(x, h - bytes[i] / most * h * 0.95);
    last = bytes[i];
  }
  c.lineTo(w, h - last / most * h * 0.95); c.lineTo(w, h); c.closePath();
  c.fillStyle = "#8fb8de"; c.fill();
  if (mark !== undefined) { c.fillStyle = "#c33"; c.fillRect(mark, 0, devicePixelRatio, h); }
}
canvas.addEventListener("mousemove", e => {
  const x = e.offsetX / canvas.clientWidth * span;
  let low = 0, high = times.length - 1;
  while (low < high) { const middle = (low + high + 1) >> 1; if (times[middle] <= x) low = middle; else high = middle - 1; }
  document.getElementById("tip").textContent = times.length ? `${(x / 1e3).toFixed(3)} ms: ${size(bytes[low])}, in ${data.names[data.where[low]]}` : "";
  draw(e.offsetX * devicePixelRatio);
});
addEventListener("resize", () => draw()); draw();
</script></body></html>
"""


def write_memory_timeline(path: str, profile: Profile) -> None:
    """By the path's end: .html draws, .raw.json.gz has every change as [ns, action, [address, bytes], operator], others [times in µs, bytes in use]."""
    times = [change.time_us for change in profile.memory]
    in_use = [change.in_use for change in profile.memory]
    if path.endswith(".html"):
        with open(path, "w", encoding="utf-8") as file:
            file.write(_PAGE.replace("/*DATA*/", json.dumps(_drawn(profile, times, in_use)).replace("</", "<\\/")))
        return
    if path.endswith("raw.json.gz"):
        text = json.dumps([
            [int(profile.base_ns + change.time_us * 1e3), "create" if change.nbytes > 0 else "destroy", [change.address, abs(change.nbytes)],
             change.event.name if change.event is not None else None]
            for change in profile.memory
        ])  # fmt: skip
    else:
        text = json.dumps([times, in_use])
    opener: Any = gzip.open if path.endswith(".gz") else open
    with opener(path, "wt", encoding="utf-8") as file:
        file.write(text)


def _drawn(profile: Profile, times: list[float], in_use: list[int]) -> dict[str, Any]:
    names: dict[str, int] = {}
    where = []
    peak, peak_time = 0, 0.0
    at_peak: dict[int, tuple[str, int]] = {}
    for change in profile.memory:
        name = change.event.name if change.event is not None else "no operator"
        where.append(names.setdefault(name, len(names)))
        if change.in_use > peak:
            peak, peak_time = change.in_use, change.time_us
    for change in profile.memory:  # once more, up to the peak
        if change.nbytes > 0:
            at_peak[change.address] = (change.event.name if change.event is not None else "no operator", change.nbytes)
        else:
            at_peak.pop(change.address, None)
        if change.time_us == peak_time and change.in_use == peak:
            break
    sums: dict[str, list[int]] = {}
    for name, nbytes in at_peak.values():
        entry = sums.setdefault(name, [0, 0])
        entry[0] += nbytes
        entry[1] += 1
    before = peak - sum(entry[0] for entry in sums.values())
    rows = [[name, nbytes, blocks] for name, (nbytes, blocks) in sorted(sums.items(), key=lambda item: -item[1][0])]
    if before > 0:
        rows.append(["before the profile", before, 0])
    return {"times": times, "bytes": in_use, "where": where, "names": list(names), "peak": peak, "peak_time": peak_time, "at_peak": rows}
