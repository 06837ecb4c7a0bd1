# What a fresh machine needs: Python 3.11 or newer, gcc, make. Every target makes its own virtual environment; PYTHON
# chooses the interpreter. Environments are remade when a source of the installed package changes.

PYTHON ?= python3
# One process a core. The comparison of every operator with PyTorch's database is `make conformance`.
PYTEST_FLAGS ?= -q -n auto --ignore=tests/conformance/test_operators.py
# All samples of all kinds (about four minutes on two cores); fails where fewer pass than in the saved run. CONFORMANCE= fails
# wherever one does not pass and describes it.
CONFORMANCE ?= --timeout 120 --failures 0 --compare docs/benchmarks/conformance.json
BENCH ?= --against torch,numpy --threads 1,2
# PIP_FLAGS passes options to pip, for example an index with PyTorch's CPU build, which suffices for the comparison.
PIP_FLAGS ?=
WHEELS ?=
# 1: the core's loops for this machine's instruction set alone, in less time; 0: for all sets, as in wheels.
TENSORRT_LITE_NATIVE ?= 1
export TENSORRT_LITE_NATIVE

SOURCES := pyproject.toml $(wildcard setup.py MANIFEST.in) \
	$(shell find tensorrt_lite cysrc cuda_src tools -type f -not -path '*/__pycache__/*' 2>/dev/null)

TREE_TESTS := tests/test_arrows.py tests/test_census.py tests/test_contributing.py tests/test_declarations.py tests/test_docs.py tests/test_help.py tests/test_lesser_forms.py \
	tests/test_missing_names.py tests/test_names.py tests/test_overrides_census.py tests/test_readme.py tests/test_stubs.py tests/core/test_state.py \
	tests/dispatch/test_nothing_skips_the_dispatcher.py tests/dispatch/test_one_dispatcher.py tests/loops/test_sets.py tests/cuda/test_scalar_math.py \
	tests/core/test_safety_threads.py::test_kernels_that_give_up_the_gil_hold_their_memory

# Programs of random calls in the sanitized build (docs/safety.md): how long, and from which seed.
SANITIZE ?= --seconds 600 --jobs 2

.PHONY: demo test check test-cuda lint types conformance bench sanitize site wheel clean

# Trains a CNN on handwritten digits: accuracy on the terminal, plots and checkpoint in out/digits.
demo: .venv/installed
	.venv/bin/python examples/digits.py

# The whole test suite on all cores, on the core built in place (an editable install): 14 minutes on two.
test: .venv-test/installed
	.venv-test/bin/python -m pytest $(PYTEST_FLAGS) tests

# The tests that read the whole tree, in a minute: lists of exceptions, declarations, stubs, documents, structure. Most changes that break something
# far away break one of these.
check: .venv-test/installed
	.venv-test/bin/ruff check .
	.venv-test/bin/python -m pytest -q $(TREE_TESTS)

# Tensors on CUDA without a GPU: the tests of a device and PyTorch's operator samples beside the CPU, on the emulator.
test-cuda: export TENSORRT_LITE_CUDA = emulate
# what the test suite's emulator compiles, too
test-cuda: export TENSORRT_LITE_CUDA_CACHE ?= $(CURDIR)/build/cuda_emulator
test-cuda: export TENSORRT_LITE_CUDA_TRACE = $(CURDIR)/build/cuda_trace
test-cuda: .venv-test/installed
	mkdir -p build && rm -f $(TENSORRT_LITE_CUDA_TRACE)
	.venv-test/bin/python -m pytest $(PYTEST_FLAGS) tests/cuda/device tests/cuda/test_families.py
	.venv-test/bin/python -m tests.conformance.device --samples 3
	.venv-test/bin/python tests/cuda/entry_points.py $(TENSORRT_LITE_CUDA_TRACE)

lint: .venv-test/installed
	.venv-test/bin/ruff check .

# The parts of the package that are checked strictly (docs/gaps.md), and the stubs as a user of a checker meets them.
types: .venv-test/installed
	.venv-test/bin/python -m mypy tensorrt_lite/bench tensorrt_lite/info.py tensorrt_lite/__main__.py
	.venv-test/bin/python -m mypy --strict --warn-unused-ignores tests/typing/program.py
	.venv-test/bin/python -m tools.typed_examples build/typed_examples
	.venv-test/bin/python -m mypy --strict --warn-unused-ignores build/typed_examples/*.py
	.venv-test/bin/basedpyright --pythonpath .venv-test/bin/python

conformance: .venv-test/installed
	.venv-test/bin/python -m tests.conformance $(CONFORMANCE)

# Builds the core with the address and undefined-behaviour sanitizers (minutes) beside the one in place, and calls everything.
sanitize: .venv-test/installed
	.venv-test/bin/python -m tools.sanitize python -m pytest -q tests/core/test_safety.py
	.venv-test/bin/python -m tools.sanitize python -m tools.fuzz $(SANITIZE)

# The documentation, in build/site/html: a warning (a link that leads nowhere) fails. Reads nothing from the network.
site: .venv-test/installed
	.venv-test/bin/python -m tools.site

bench: .venv-test/installed
	.venv-test/bin/tensorrt-lite bench $(BENCH)

# The source distribution and a repaired, tested wheel for PYTHON, in dist. WHEELS passes options (--python INTERPRETER, repeatable).
wheel: .venv-wheels/installed
	.venv-wheels/bin/python -m tools.wheels $(WHEELS)

clean:
	rm -rf .venv .venv-test .venv-wheels build dist out *.egg-info .pytest_cache .mypy_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/installed: $(SOURCES)
	$(call environment,.venv)
	.venv/bin/python -m pip install --quiet $(PIP_FLAGS) '.[demo]'
	touch $@

.venv-test/installed: $(SOURCES)
	$(call environment,.venv-test)
	.venv-test/bin/python -m pip install --quiet $(PIP_FLAGS) -e '.[test,conformance,bench,demo,docs]'
	touch $@

.venv-wheels/installed: pyproject.toml
	$(call environment,.venv-wheels)
	.venv-wheels/bin/python -m pip install --quiet $(PIP_FLAGS) --group wheels
	touch $@

define environment
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "$(PYTHON) is older than Python 3.11; choose another with make PYTHON=..."; exit 1; }
	test -x $(1)/bin/python || $(PYTHON) -m venv $(1)
	$(1)/bin/python -m pip install --quiet --upgrade pip
endef
