"""The benchmark runner: declarative rows, each built for several libraries and timed in turns.

`measure` times, `worker` runs a library in a process of its own, `suites` hold the rows, `report` and `chart` show the
result, `cli` ties them together. Nothing here is imported by `import tensorrt_lite`, and importing this package loads
no library: a worker for another library never runs `tensorrt_lite/__init__`.
"""
