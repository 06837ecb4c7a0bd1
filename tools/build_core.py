"""Builds the compiled core: generate, Cython, gcc (loops once per instruction set, or with TENSORRT_LITE_NATIVE=1 for this machine's own
alone), link. Used by setup.py. TENSORRT_LITE_QUICK=1 is the native build with few optimisations.

Every step is skipped when the text of its inputs and its flags are those of the last build, so a changed kernel costs
one module. Results lie in <build>/; the extension modules go to <target>/tensorrt_lite/_C/.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import json
import os
import queue
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tools.codegen.declarations import declarations_source, loops_source, public_source
from tools.codegen.shapes import python_source as shape_rules_source
from tools.codegen.generate import generate
from tools.codegen.help import help_source
from tools.codegen.schema import DeclarationError, families, load, parts
from tools.codegen.stubs import write_documentation
from tools.core_sources import core_sources_digest

ROOT = Path(__file__).resolve().parent.parent
# What of -O3 the generated loops, reductions, softmax and norms need. All of it doubles compile time and size: it unrolls
# and clones what is vectorised already. Pooling, products and indexing take all of it. Old processors (base)
# take -O1, which vectorises the loops marked for it and takes half of -O2's compile time.
VECTORISE = ["-O2", "-ftree-loop-vectorize", "-fvect-cost-model=dynamic"]
# Modules that every call passes through take -O2. Others take -O1, three fifths of its time; where no short call is measured, equal ways
# out of a function, of which translated code has many, are joined and stay at its end. What is seldom called, or prepares what takes long
# (a device's kernel, a transform), is compiled for size, without the passes that look through a function for little; calls clear memory
# there, since -Os does it inline by `rep stosb`, which is slow to start.
EVERY_CALL = tuple(f"tensorrt_lite._C.{name}" for name in ("core.", "autograd.node", "autograd.operator_nodes", "autograd.engine", "autograd.pointwise", "autograd.attributes", "ops.entry", "ops.recording", "ops.arithmetic", "ops.matmul", "ops.norm", "ops.random", "ops.indexing", "ops.reduction"))
SELDOM = tuple(f"tensorrt_lite._C.{name}" for name in (
    "cuda.", "autograd.anomaly", "core.custom", "core.dlpack", "core.extension", "core.hints", "core.isa", "core.mapped", "core.python_key",
    "core.return_types", "core.row_schema", "core.sparse", "core.transform", "core.warning", "ops.linalg.derivatives", "ops.segment"))  # fmt: skip
SHORT_CALLS = tuple(f"tensorrt_lite._C.ops.{name}" for name in ("attention", "creation", "fft", "joining", "linalg", "loss", "pool", "resize", "sorting", "special", "support", "view"))
COMMONLY = ["-O1", "-fcrossjumping", "-fno-reorder-blocks"]
SMALL = ["-Os", *(f"-fno-{name}" for name in ("expensive-optimizations", "gcse", "ipa-cp", "ipa-modref", "ipa-ra", "ivopts", "peephole2", "rerun-cse-after-loop", "schedule-insns2", "store-merging",
                                              "tree-pre", "tree-vrp")), "-mstringop-strategy=libcall"]  # fmt: skip
# What Cython runs once, at import, is a tenth of a module's code.
ONCE = ['-DCYTHON_SMALL_CODE=__attribute__((cold,optimize("O1")))']
# These passes turn one selection after another (clamp: a minimum of a maximum) into branches, which are not vectorised.
SELECTIONS = ["-fno-thread-jumps", "-fno-tree-dominator-opts", "-fno-tree-pre"]
ISA_FLAGS = {
    "base": ["-march=x86-64"],
    "avx2": ["-march=x86-64-v3"],
    "avx512": ["-march=x86-64-v4", "-mprefer-vector-width=512"],
}
# What C forbids and gcc lets pass: a call of a function that nobody declared is a wrong result or an undefined symbol at import. What Cython's C is full of
# is not said: it would hide the message that counts.
MISTAKES = ["-Wno-incompatible-pointer-types", "-Wno-discarded-qualifiers", *(f"-Werror={name}" for name in ("implicit-function-declaration", "implicit-int", "int-conversion", "return-type"))]
# No -ffast-math: on gcc 12 it switches the whole process to flush-to-zero. -fopenmp is for `omp simd`: no module is linked with a
# runtime, parallel.h opens one.
COMMON = ["-fPIC", "-fopenmp", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "-fwrapv", "-fno-plt", *MISTAKES]
PACKAGE = "tensorrt_lite._C"
TRANSLATION = 2  # what adapt_translation makes of Cython's C: a new number translates all modules anew
CIMPORT = re.compile(r"^\s*(?:from\s+|cimport\s+)(tensorrt_lite\._C\.[\w.]+)(?:\s+cimport\b|\s*(?:#.*)?$|\s+as\b)", re.M)


class CompileError(RuntimeError):
    pass


def refuse_old_python() -> None:
    """An interpreter that the package does not take (`requires-python`) is refused before anything is compiled: its headers lack what the core uses."""
    if sys.version_info < (3, 11):
        raise SystemExit(f"tensorrt_lite cannot be built for {sys.executable}: it is Python {sys.version_info[0]}.{sys.version_info[1]}, and the package needs 3.11 or newer.")


def digest(*parts: object) -> str:
    h = hashlib.sha256()
    for p in parts:
        h.update(p if isinstance(p, bytes) else str(p).encode())
        h.update(b"\0")
    return h.hexdigest()


def needs_gil(module: str) -> bool:
    """Whether a free-threaded interpreter turns the GIL on when the module is imported: CUDA's, but not what tells that there is no driver."""
    return module.startswith(f"{PACKAGE}.cuda.") and not module.endswith(".driver")


OPERATOR_NAME = re.compile(r"(?:op|below|OP)_\w+")  # anywhere: a boundary of words in front would make the search ten times slower


def used_declarations(declarations: str, text: str) -> str:
    """Of operators.pxd or operators.h the lines whose operators a text names: a new row changes nothing for the modules that do not."""
    used = {name.partition("_")[2].lower() for name in OPERATOR_NAME.findall(text)}
    lines = ((line, OPERATOR_NAME.search(line)) for line in declarations.splitlines())
    return "\n".join(line for line, found in lines if found is None or found[0].partition("_")[2].lower() in used)


def shortened(text: str, length: int = 8000) -> str:
    """The beginning of a compiler's messages, whose first errors explain the others, and the end: whole lines."""
    if len(text) <= length:
        return text
    head, tail = text[: length * 3 // 4].rpartition("\n")[0], text[-length // 4 :].partition("\n")[2]
    return f"{head}\n...\n{tail}"


def copy_only(folder: Path, sources: list[Path]) -> None:
    """Copies of the files in the folder, and no others: what was taken out of the sources must be missed."""
    folder.mkdir(parents=True, exist_ok=True)
    for p in sources:
        shutil.copyfile(p, folder / p.name)
    names = {p.name for p in sources}
    for p in folder.iterdir():
        if p.is_file() and p.name not in names:
            p.unlink()


class Builder:
    def __init__(self, build: Path, target: Path, debug: bool | None = None, cache: Path | None = None):
        self.build = build
        self.cache = cache  # results by content, shared by the checkouts of one machine
        self.target = target / "tensorrt_lite" / "_C"
        # TENSORRT_LITE_SANITIZE=address,undefined, or thread: a debug build with gcc's sanitizers (docs/safety.md; `make sanitize`)
        self.sanitize = os.environ.get("TENSORRT_LITE_SANITIZE", "")
        self.debug = bool(os.environ.get("TENSORRT_LITE_DEBUG", "") not in ("", "0") or self.sanitize) if debug is None else debug
        self.stamps_path = build / "stamps.json"
        self.stamps: dict[str, str] = json.loads(self.stamps_path.read_text()) if self.stamps_path.exists() else {}
        # TENSORRT_LITE_NATIVE=1: loops for the instruction set that this machine would choose
        self.native = os.environ.get("TENSORRT_LITE_NATIVE", "") not in ("", "0")
        # TENSORRT_LITE_QUICK=1: for correctness work. The native build's loops with few optimisations, modules with none.
        self.quick = os.environ.get("TENSORRT_LITE_QUICK", "") not in ("", "0")
        self.native = self.native or self.quick
        # TENSORRT_LITE_TRACEBACK=full keeps the core's own frames in tracebacks; nobody but its developers has the sources they point to
        self.tracebacks = self.debug or os.environ.get("TENSORRT_LITE_TRACEBACK", "") == "full"
        self.jobs = int(os.environ.get("TENSORRT_LITE_JOBS", "0")) or os.cpu_count() or 1
        self.times: dict[str, float] = {}  # processor time of each step that was not skipped
        self.reused: list[str] = []  # steps whose result an earlier build or the cache had
        self.c_files: dict[Path, tuple[bytes, list[Path]]] = {}
        self.workers: list[subprocess.Popen[str]] = []
        self.idle_workers: queue.SimpleQueue[subprocess.Popen[str]] = queue.SimpleQueue()
        self.extra = os.environ.get("CFLAGS", "").split()
        self.suffix = sysconfig.get_config_var("EXT_SUFFIX")
        self.compiler = os.environ.get("CC", "gcc").split()

    # ---- steps

    def run(self) -> None:
        """Build what is not as the sources say. A second build in this folder waits: both would write the same objects, and halves of them into the cache."""
        refuse_old_python()
        self.build.mkdir(parents=True, exist_ok=True)
        with open(self.build / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.build_all()

    def build_all(self) -> None:
        start, own_time = time.time(), time.process_time()
        self.sources = core_sources_digest(ROOT)  # before they are read: what is edited meanwhile is newer than the core
        loops = self.generate()
        modules = self.modules()
        self.link_include_tree(modules)
        try:
            self.parallel([(self.cythonize, (name, source)) for name, source in modules.items()] + [(self.cythonize_shared, ())])
        finally:
            self.end_workers()
        jobs = []
        objects: dict[str, list[Path]] = {}
        loops_of: dict[Path, tuple[Path, Path, list[str]]] = {}  # an object may belong to two modules
        own_loops = self.own_loops(modules)
        for name in [*modules, f"{PACKAGE}._cyutility"]:
            objects[name] = [self.object_path(name)]
            jobs.append((self.compile, (self.c_path(name), self.object_path(name), [*self.module_flags(name), *self.python_flags()])))
            if name.startswith((f"{PACKAGE}.ops.", f"{PACKAGE}.core.")):
                for source in [*loops.get(name.removeprefix(f"{PACKAGE}.ops."), []), *own_loops.get(name, [])]:
                    for isa in self.sets_of(source):
                        o = self.build / "objects" / f"{source.stem}_{isa}.o"
                        objects[name].append(o)
                        loops_of[o] = (source, o, self.loop_flags(source, isa))
        jobs += [(self.compile, arguments) for arguments in loops_of.values()]
        jobs.sort(key=lambda j: -j[1][0].stat().st_size if j[1][0].exists() else 0)
        self.parallel(jobs)
        self.parallel([(self.link, (name, objects[name])) for name in objects])
        self.package_files(modules)
        if not self.debug:  # a debug build may need a sanitizer's library in the process
            self.write_stubs()
        if self.target == ROOT / "tensorrt_lite" / "_C":
            write_documentation(ROOT, self.operators)
        self.stamps_path.write_text(json.dumps(self.stamps))
        (self.build / "times.json").write_text(json.dumps(dict(sorted(self.times.items(), key=lambda kv: -kv[1])), indent=0))
        (self.build / "build_cost.json").write_text(json.dumps(self.cost(time.process_time() - own_time)))
        print(f"tensorrt_lite: core built in {time.time() - start:.1f} s ({sum(self.times.values()) + time.process_time() - own_time:.1f} s of processor time)", file=sys.stderr)

    def cost(self, own: float) -> dict:
        """Processor time by kind of step, for tools.build_cost."""
        seconds = dict.fromkeys(("cython", "modules", "loops", "links"), 0.0) | {"own": own}
        for label, spent in self.times.items():
            module = label.endswith(".o") and label.rpartition("_")[2].removesuffix(".o") not in ISA_FLAGS
            seconds["cython" if label.startswith("cython ") else "links" if label.startswith("link ") else "modules" if module else "loops" if label.endswith(".o") else "own"] += spent
        return {"seconds": seconds, "reused": len(self.reused), "native": self.native, "quick": self.quick}

    def generate(self) -> dict[str, list[Path]]:
        self.generated = self.build / "generated"
        self.operators = load(ROOT / "cysrc" / "ops")
        return generate(ROOT, self.generated, self.operators)

    def modules(self) -> dict[str, Path]:
        """{module name: source}. Of an operator family ops/<family>/: the generated module, which takes in <family>.pyx and what nobody cimports, and the others of the folder."""
        found = {}
        for folder in ("core", "autograd", "cuda", "ops"):
            found |= {f"{PACKAGE}.{folder}.{p.stem}": p for p in sorted((ROOT / "cysrc" / folder).glob("*.pyx"))}
        for folder in self.family_folders():
            found[f"{PACKAGE}.ops.{folder.name}"] = self.generated / "ops" / f"{folder.name}.pyx"
            found |= {f"{PACKAGE}.ops.{folder.name}.{p.stem}": p for p in sorted(folder.glob("*.pyx")) if p.stem != folder.name and p not in parts(folder)}
        found |= {f"{PACKAGE}.cuda.{p.stem}": p for p in sorted((self.generated / "cuda").glob("*.pyx"))}
        return found

    @staticmethod
    def family_folders() -> list[Path]:
        return [ROOT / "cysrc" / "ops" / name for name in families(ROOT / "cysrc" / "ops")]

    @staticmethod
    def cuda_families(modules: dict[str, Path]) -> list[str]:
        """The modules below cuda that set CUDA's functions of families' steps; the backend is imported before them."""
        cuda = {name.rpartition(".")[2]: p for name, p in modules.items() if name.startswith(f"{PACKAGE}.cuda.")}
        return [name for name, p in sorted(cuda.items()) if name != "backend" and f"{PACKAGE}.steps." in p.read_text()]

    @staticmethod
    def own_loops(modules: dict[str, Path]) -> dict[str, list[Path]]:
        """{module: sources below cysrc/loops} by the words of their names: sorting_bins.c is of ops.sorting.bins where there is such a module, else of ops.sorting:
        of its module `cpu`, which has the CPU's steps, where there is one. The generated module calls the task of a step that is a loop (`<STEP>_TASK`)."""
        owners = {"_".join(name.removeprefix(f"{PACKAGE}.").split(".")[1:]): name for name in modules if name.startswith((f"{PACKAGE}.ops.", f"{PACKAGE}.core."))}
        found: dict[str, list[Path]] = {}
        for p in sorted((ROOT / "cysrc" / "loops").glob("*.c")):
            words = p.stem.split("_")
            owner = next((owners[stem] for n in range(len(words), 0, -1) if (stem := "_".join(words[:n])) in owners), None)
            if owner is not None:
                generated = re.search(r"^\w+_TASK$", p.read_text(), re.M)
                found.setdefault(f"{owner}.cpu" if f"{owner}.cpu" in modules and not generated else owner, []).append(p)
        return found

    def link_include_tree(self, modules: dict[str, Path]) -> None:
        """<build>/include/tensorrt_lite/_C mirrors cysrc, so that cimports by package name resolve."""
        self.include = self.build / "include"
        base = self.include / "tensorrt_lite" / "_C"
        base.mkdir(parents=True, exist_ok=True)
        (self.include / "tensorrt_lite" / "__init__.pxd").touch()
        (base / "__init__.pxd").touch()
        for folder in ("core", "autograd", "cuda", "ops"):
            link(base / folder, ROOT / "cysrc" / folder)
        link(base / "operators.pxd", self.generated / "operators.pxd")
        link(base / "steps", self.generated / "steps")
        link(self.include / "kernels", ROOT / "cysrc" / "ops")
        link(self.include / "cuda", ROOT / "cysrc" / "cuda")
        link(self.include / "autograd", ROOT / "cysrc" / "autograd")

    def c_path(self, name: str) -> Path:
        return self.build / "c" / ("_cyutility.c" if name.endswith("._cyutility") else name.replace(".", "_") + ".c")

    def object_path(self, name: str) -> Path:
        return self.build / "objects" / (name.replace(".", "_") + ".o")

    def cython(self, key: str, arguments: list[str], output: Path, inputs: str) -> None:
        stamp = digest(inputs, [self.relative(a) for a in arguments], TRANSLATION)  # debug builds differ in C alone
        if self.stamps.get(key) == stamp and output.exists():
            adapt_translation(output)
            self.reused.append(key)
            return
        output.parent.mkdir(parents=True, exist_ok=True)
        try:
            self.cached(stamp, output, key, lambda: self.translate(key, ["-3", *arguments]))
        except BaseException:
            output.unlink(missing_ok=True)  # Cython leaves a file behind, which the stamp of the last success would vouch for
            raise
        adapt_translation(output)
        self.stamps[key] = stamp

    def relative(self, text: str) -> str:
        """A command's argument without the folders of this checkout, so that results can be shared."""
        return text.replace(str(self.build), "<build>").replace(str(ROOT), "<root>")

    def cached(self, stamp: str, output: Path, label: str, make: Callable[[], None]) -> None:
        """Make one file, or take it from the cache."""
        if self.cache is None:
            make()
            return
        kept = self.cache / (stamp + output.suffix)
        self.cache.mkdir(parents=True, exist_ok=True)
        with open(self.cache / f"{stamp}.lock", "w") as lock:
            # another checkout may be making the same file: wait for it, but not for long
            for _ in range(100):
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    time.sleep(0.2)
            if kept.exists():
                shutil.copyfile(kept, output)
                self.reused.append(label)
                return
            make()
            fresh = self.cache / f"{stamp}.{os.getpid()}.part"
            shutil.copyfile(output, fresh)
            fresh.rename(kept)

    def cythonize(self, name: str, source: Path) -> None:
        out = self.c_path(name)
        text = source.read_text()
        parts = [text, *(p.read_text() for p in self.included_text(source))]
        parts.append(self.declarations(name, parts))
        # boundscheck concerns Python's lists and tuples alone (kernels work on pointers): an index of what a caller passed must
        # raise, in every build.
        directives = ["-X", "language_level=3", "-X", "embedsignature=False", "-X", "auto_pickle=False", "-X", "binding=True", "-X", "wraparound=False",
                      "-X", "boundscheck=True", "-X", "cdivision=True", "-X", "initializedcheck=False", "-X", "emit_code_comments=False",
                      "-X", f"freethreading_compatible={not needs_gil(name)}"]  # fmt: skip
        path = self.build / "pyx" / (name.replace(".", "_") + ".pyx")
        path.parent.mkdir(parents=True, exist_ok=True)
        text = re.sub(r'^include "(?!kernels/)', f'include "{source.parent.name}/', text, flags=re.M)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
        self.cython("cython " + name, [*directives, "--module-name", name, "-I", str(self.include), f"--shared={PACKAGE}._cyutility", str(path), "-o", str(out)], out, digest(*parts, " ".join(directives)))

    def included_text(self, source: Path) -> list[Path]:
        """What a module includes: a generated one the family's <family>.pyx and its parts."""
        if source.parent != self.generated / "ops":
            return sorted(source.parent.glob(f"{source.stem}_*.pxi"))
        folder = ROOT / "cysrc" / "ops" / source.stem
        return [p for p in (folder / source.name, *parts(folder), *sorted(folder.glob("*.pxi"))) if p.exists()]

    def declarations(self, module: str, texts: list[str]) -> str:
        """Digest of all declarations that a module's texts cimport, however deep, and its own: others cannot change its translation."""
        seen: dict[str, str] = {}
        found = [module]
        for text in texts:
            found += CIMPORT.findall(text)
        while found:
            name = found.pop()
            relative = name.removeprefix(f"{PACKAGE}.").replace(".", "/") + ".pxd"
            path = (self.generated if name.startswith((f"{PACKAGE}.operators", f"{PACKAGE}.steps.")) else ROOT / "cysrc") / relative
            if name not in seen and path.exists():
                seen[name] = path.read_text()
                if path.name == "operators.pxd":
                    seen[name] = used_declarations(seen[name], "\n".join(texts))
                found += CIMPORT.findall(seen[name])
        return digest(*(seen[name] for name in sorted(seen)))

    def cythonize_shared(self) -> None:
        out = self.c_path(f"{PACKAGE}._cyutility")  # the module's name is the file's
        self.cython("cython shared", ["-X", "freethreading_compatible=True", f"--generate-shared={out}"], out, "")

    def sets_of(self, source: Path) -> list[str]:
        """The instruction sets that a source of loops is compiled for: all, or those that its head lists by `Instruction sets: ...`. The
        native build takes the one of them that this machine would choose."""
        listed = re.search(r"^[ /]\* Instruction sets: ([\w, ]+)", source.read_text(), re.M)
        sets = [name.strip() for name in listed[1].split(",")] if listed else list(ISA_FLAGS)
        if sets != [name for name in ISA_FLAGS if name in sets] or sets[0] != "base":
            raise SystemExit(f"{source}: instruction sets {', '.join(sets)}: choose from {', '.join(ISA_FLAGS)}, base first")
        able = list(ISA_FLAGS)[:list(ISA_FLAGS).index(self.own_isa) + 1] if self.native else []
        return [name for name in sets if name in able][-1:] if self.native else sets

    def loop_flags(self, source: Path, isa: str) -> list[str]:
        """What gcc is told of a source of loops; rows that gain nothing by a set are left out (ISA_HAS) unless it is the only one."""
        vectorised = source.stem.startswith(("loops_", "reduction_reduce", "reduction_scan_sums", "reduction_softmax", "loss_cross_entropy", "norm_tables", "conv", "matmul", "attention", "linalg_blocks", "linalg_reflectors", "linalg_tridiagonal"))
        level = COMMONLY if isa == "base" else ["-O1"] if source.stem == "iteration_casts" else VECTORISE + SELECTIONS * source.stem.startswith("loops_") if vectorised else ["-O3"]
        # at another offset in a cache line the same convolution took a tenth longer
        aligned = ["-falign-functions=64"] * source.stem.startswith(("conv", "matmul", "norm_tables", "pool_tables", "reduction_reduce", "reduction_scan_sums", "reduction_softmax", "loss_cross_entropy", "attention"))
        rows = [f"-DISA_LEVEL={list(ISA_FLAGS).index(isa)}"] * (not self.native and "ISA_HAS" in source.read_text())
        declared = [f"-I{self.build}/generated/include"] * self.reads_declarations(source)
        # nothing is thrown through a loop; a debugger has the native build
        unwound = ["-fno-asynchronous-unwind-tables"] * (not self.native and not self.debug)
        return [*level, *aligned, *unwound, f"-DISA={isa}", *rows, *ISA_FLAGS[isa], *declared, *self.include_flags()]

    @staticmethod
    def module_flags(name: str) -> list[str]:
        """How much gcc optimises the C of one module."""
        if name.startswith(SELDOM):
            return SMALL
        if name.startswith(EVERY_CALL):
            return ["-O3" if name.endswith(("core.iterator", "core.iteration")) else "-O2", *ONCE]
        return ["-O1"] if name.startswith(SHORT_CALLS) else COMMONLY

    def reads_declarations(self, source: Path) -> bool:
        """Whether a source of loops includes a <family>_steps.h, which the generator writes."""
        found, seen = [source], {source}
        while found:
            text = found.pop().read_text()
            if re.search(r'^\s*#\s*include\s+"\w+_steps\.h"', text, re.M):
                return True
            included = {source.parent / name for name in re.findall(r'^\s*#\s*include\s+"(\w+\.h)"', text, re.M)}
            found += [p for p in included - seen if p.exists()]
            seen |= included
        return False

    def include_flags(self) -> list[str]:
        """Of the loops, which are Python-free: what they compile to serves the wheels of all its versions."""
        return [f"-I{ROOT}/cysrc/{folder}" for folder in ("core", "autograd", "loops", "ops", "cuda")]

    def python_flags(self) -> list[str]:
        # CPython's inline functions check their arguments by `assert`, which only a debug build has to pay for
        return [f"-I{sysconfig.get_paths()['include']}", f"-I{self.generated}/include", *self.include_flags(), *["-DTRT_TRACEBACK=1"] * self.tracebacks, *["-DNDEBUG"] * (not self.debug)]

    def included(self, source: Path) -> bytes:
        """Digest of a C source and all headers of ours that it includes, however deep."""
        seen: dict[Path, bytes] = {}
        open_files = [source]
        while open_files:
            path = open_files.pop()
            if path in seen:
                continue
            seen[path], found = self.including(path)
            if path.name == "operators.h":
                seen[path] = used_declarations(seen[path].decode(), seen[source].decode()).encode()
            open_files += found
        return digest(*(seen[p] for p in sorted(seen, key=lambda p: p.name))).encode()

    def including(self, path: Path) -> tuple[bytes, list[Path]]:
        """A C file and the headers of ours that it includes. Read once: hundreds of objects share the headers."""
        if path not in self.c_files:
            text = path.read_bytes()
            folders = [path.parent, self.generated / "include", *(ROOT / "cysrc" / f for f in ("core", "autograd", "loops", "ops", "cuda"))]
            places = [[f / name.decode() for f in folders] for name in re.findall(rb'^\s*#\s*include\s+"([^"]+)"', text, re.M)]
            self.c_files[path] = text, [found.resolve() for place in places if (found := next((p for p in place if p.exists()), None))]
        return self.c_files[path]

    def compile(self, source: Path, output: Path, flags: list[str]) -> None:
        if self.sanitize:
            flags = flags + self.sanitizer_flags(output)
        elif self.debug:
            flags = ["-O1" if f in ("-O2", "-O3", "-Os") else f for f in flags] + ["-g", "-fno-omit-frame-pointer", "-DTRT_DEBUG=1"]
        elif self.quick:
            # loops without vectors take a fifth of the time: the same bits, as sums over blocks are written in vectors
            flags = [f for f in flags if f not in ONCE]
            flags = [*flags, *(["-Og", "-fno-tree-loop-vectorize"] if output.stem.rpartition("_")[2] in ISA_FLAGS else ["-O0"])]
        command = [*self.compiler, *COMMON, *flags, *self.extra, "-c", str(source), "-o", str(output)]
        stamp = digest(self.included(source), [self.relative(a) for a in command])
        if self.stamps.get(str(output.name)) == stamp and output.exists():
            self.reused.append(output.name)
            return
        output.parent.mkdir(parents=True, exist_ok=True)
        self.cached(stamp, output, output.name, lambda: self.command(output.name, command))
        self.stamps[str(output.name)] = stamp

    def sanitizer_flags(self, output: Path) -> list[str]:
        """What makes gcc check one module or the loops of one instruction set. Only the loops that this processor chooses (or
        TENSORRT_LITE_ISA) are checked; the others are linked as ever. Compile time decides the rest: a module's C takes a
        seventh without optimisation, with calls as checks and the address sanitizer alone (undefined behaviour is the loops')."""
        isa = output.stem.rpartition("_")[2]
        if self.sanitize == "thread":  # the allocator is the usual one, whose lists are checked, too
            return ["-O1" if isa in ISA_FLAGS else "-O0", "-g1", "-fno-omit-frame-pointer", "-fsanitize=thread"]
        if isa in ISA_FLAGS:
            return ["-O1", "-g1", "-fno-omit-frame-pointer", f"-fsanitize={self.sanitize}", "-fno-sanitize=alignment", "-fno-sanitize-recover=all"] if isa == self.own_isa else []
        flags = ["-O0", "-g1", "-DTRT_DEBUG=1"]
        if "address" in self.sanitize:
            flags += ["-fsanitize=address", "--param=asan-instrumentation-with-call-threshold=0"]
        return flags

    @functools.cached_property
    def own_isa(self) -> str:
        """The instruction set that this process would choose (TENSORRT_LITE_ISA lowers it)."""
        program = self.build / "own_isa"
        program.parent.mkdir(parents=True, exist_ok=True)
        text = "#include \"isa.h\"\nint main(void) { return isa_level(); }\n"
        subprocess.run([*self.compiler, f"-I{ROOT}/cysrc/core", "-x", "c", "-", "-o", str(program)], input=text, text=True, check=True)
        return list(ISA_FLAGS)[subprocess.run([str(program)]).returncode]

    def link(self, name: str, objects: list[Path]) -> None:
        output = self.extension_path(name)
        stamp = digest(*(self.stamps[o.name] for o in objects), str(output), self.sanitize)
        if self.stamps.get("link " + name) == stamp and output.exists():
            return
        output.parent.mkdir(parents=True, exist_ok=True)
        strip = [f"-fsanitize={self.sanitize}"] if self.sanitize else [] if self.debug else ["-s"]
        self.command("link " + name, [*self.compiler, "-shared", *strip, *self.extra, *map(str, objects), "-o", str(output), "-lm", "-ldl"])
        self.stamps["link " + name] = stamp

    def extension_path(self, name: str) -> Path:
        """Where a module goes; that of an operator family is the package of the family's others."""
        path = self.target / name.removeprefix(PACKAGE + ".").replace(".", "/")
        package = path.parent == self.target / "ops" and (ROOT / "cysrc" / "ops" / path.name).is_dir()
        return (path / "__init__" if package else path).with_suffix(self.suffix)

    def installed_declarations(self) -> list[Path]:
        """The .pxd files, the core's headers, and of the loops' headers those that a .pxd file names, with what they include."""
        declarations = sorted((ROOT / "cysrc").rglob("*.pxd"))
        loops = {p.relative_to(ROOT / "cysrc" / "loops").as_posix(): p for p in (ROOT / "cysrc" / "loops").rglob("*.h")}
        others = [p for p in sorted((ROOT / "cysrc").rglob("*.h")) if p not in loops.values()]
        named = re.compile(r'^(?:cdef extern from|\s*#\s*include) "(?:\.\./loops/)?([\w/.]+)"', re.M)
        taken: dict[str, Path] = {}
        texts = [p.read_text() for p in declarations + others]
        while texts:
            found = {name for name in named.findall(texts.pop()) if name in loops and name not in taken}
            taken |= {name: loops[name] for name in found}
            texts += [loops[name].read_text() for name in found]
        return [*declarations, *others, *sorted(taken.values())]

    def package_files(self, modules: dict[str, Path]) -> None:
        """__init__ files, the list of operator families, and the .pxd files for users' own Cython modules."""
        for folder in ("", "core", "autograd", "cuda", "ops"):
            if (self.target / folder).exists():
                init = self.target / folder / "__init__.py"
                init.write_text(self.init_text(modules) if folder == "" else "")
                (self.target / folder / "__init__.pxd").touch()
        for p in self.installed_declarations():
            destination = self.target / p.relative_to(ROOT / "cysrc")
            destination.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(p, destination)
        for folder in self.family_folders():
            (self.target / "ops" / folder.name / "__init__.pxd").touch()
        shutil.copyfile(self.generated / "operators.pxd", self.target / "operators.pxd")
        copy_only(self.target / "steps", list((self.generated / "steps").iterdir()))
        shared = ("core/dtype_table.h", "core/float8.h", "loops/special_functions.h", "loops/special_coefficients.h")
        copy_only(self.target / "cuda" / "src", [*(ROOT / "cuda_src").iterdir(), *(ROOT / "cysrc" / name for name in shared), *(self.generated / "include").glob("*_steps.h")])
        # for those who have no GPU: the package brings the emulator's sources
        shutil.copytree(ROOT / "tools" / "cuda_emulator", self.target / "cuda" / "emulator", dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copyfile(ROOT / "docs" / "gaps.md", self.target / "gaps.md")  # for `tensorrt-lite missing`
        (self.target / "declarations.py").write_text(declarations_source(self.operators))
        (self.target / "declared_loops.py").write_text(loops_source(self.operators))
        (self.target / "shape_rules.py").write_text(shape_rules_source(self.operators))
        (self.target / "help.json").write_text(help_source(ROOT / "cysrc" / "ops", self.operators), encoding="utf-8")
        shutil.copyfile(ROOT / "tools" / "codegen" / "expression.py", self.target / "expression.py")
        bundled = self.target / "libgomp.so.1"
        bundled.unlink(missing_ok=True)
        if os.environ.get("TENSORRT_LITE_BUNDLE_OPENMP", "") not in ("", "0"):
            shutil.copyfile(self.openmp_runtime(), bundled)
        # modules that no longer exist must not be imported
        wanted = {self.extension_path(name) for name in (*modules, f"{PACKAGE}._cyutility")}
        for p in self.target.rglob(f"*{self.suffix}"):
            if p not in wanted:
                p.unlink()

    def openmp_runtime(self) -> str:
        """The compiler's libgomp, which wheels bring for machines without one; parallel.h opens it."""
        path = subprocess.run([*self.compiler, "-print-file-name=libgomp.so.1"], capture_output=True, text=True, check=True).stdout.strip()
        if not os.path.isabs(path):
            raise SystemExit(f"TENSORRT_LITE_BUNDLE_OPENMP: {' '.join(self.compiler)} has no libgomp.so.1")
        return path

    def write_stubs(self) -> None:
        """The stubs describe what the modules export, so they are made by importing them."""
        stamp = digest(*(self.stamps[k] for k in sorted(self.stamps) if k.startswith("link ")), (ROOT / "tools" / "codegen" / "stubs.py").read_bytes(), declarations_source(self.operators))
        if self.stamps.get("stubs") == stamp and all((self.target.parent / p).exists() for p in ("_operators.pyi", "_nn_operators.pyi", "linalg/__init__.pyi", "special/__init__.pyi")):
            return
        # -B: the import would leave bytecode in the folder that becomes the wheel
        self.command("stubs", [sys.executable, "-B", "-m", "tools.codegen", "stubs", str(self.target.parent.parent)], ROOT)
        self.stamps["stubs"] = stamp

    def init_text(self, modules: dict[str, Path]) -> str:
        families = [folder.name for folder in self.family_folders()]
        version = subprocess.run([*self.compiler, "--version"], capture_output=True, text=True).stdout.splitlines()[0]
        facts = {"FAMILIES": families, "CUDA_FAMILIES": self.cuda_families(modules), "DEBUG": self.debug, "TRACEBACKS": self.tracebacks, "COMPILER": version, "SOURCES": self.sources}
        return "".join(f"{name} = {value!r}\n" for name, value in facts.items()) + public_source(self.operators)

    # ---- running commands

    def command(self, label: str, command: list[str], folder: Path | None = None) -> None:
        with tempfile.TemporaryFile() as output:
            process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, cwd=folder or self.build)
            _, status, usage = os.wait4(process.pid, 0)  # processor time: others may be using the machine
            process.returncode = os.waitstatus_to_exitcode(status)
            self.times[label] = usage.ru_utime + usage.ru_stime
            if process.returncode:
                output.seek(0)
                raise CompileError(f"{label} failed:\n{shortened(output.read().decode(errors='replace'))}\nof the command {' '.join(command)}")

    def translate(self, label: str, arguments: list[str]) -> None:
        """Run Cython in one of at most `jobs` worker processes."""
        try:
            worker = self.idle_workers.get_nowait()
        except queue.Empty:
            worker = subprocess.Popen([sys.executable, str(ROOT / "tools" / "cython_worker.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      text=True, cwd=self.build)  # fmt: skip
            self.workers.append(worker)
        worker.stdin.write(json.dumps(arguments) + "\n")
        worker.stdin.flush()
        answer = json.loads(worker.stdout.readline() or '{"ok": false, "text": "the Cython process ended"}')
        self.times[label] = answer.get("seconds", 0.0)
        if not answer["ok"]:
            raise CompileError(f"{label} failed:\n{answer['text']}\nof cython {' '.join(arguments)}")
        self.idle_workers.put(worker)

    def end_workers(self) -> None:
        for worker in self.workers:
            worker.stdin.close()
            worker.wait()
            worker.stdout.close()
        self.workers.clear()
        self.idle_workers = queue.SimpleQueue()

    def parallel(self, jobs: list) -> None:
        errors = []
        try:
            with ThreadPoolExecutor(self.jobs) as pool:
                for future in [pool.submit(f, *a) for f, a in jobs]:
                    error = future.exception()
                    if isinstance(error, CompileError):
                        errors.append(str(error))
                    elif error is not None:
                        raise error
            if errors:
                raise SystemExit("\n".join(errors))
        finally:
            self.stamps_path.parent.mkdir(parents=True, exist_ok=True)
            self.stamps_path.write_text(json.dumps(self.stamps))


def adapt_translation(module: Path) -> None:
    """Two changes of Cython's C.

    Calls that add a frame of Cython code to a traceback compile to nothing, unless TRT_TRACEBACK is defined: an error in an operator passes five to
    eight functions of the core, each of which would add a frame (and a code object, made at run time) without a source to show. Frames of Python
    code are the interpreter's and stay. Modules that are cimported are looked up as imported_module.h does.
    """
    text = module.read_text()
    if "TRT_TRACEBACK" in text:
        return
    declaration = re.compile(r"(/\* AddTraceback\.proto \*/\nstatic void __Pyx_AddTraceback\([^;]*;\n)")
    text, declared = declaration.subn(r"\1#ifndef TRT_TRACEBACK\n#define __Pyx_AddTraceback(function, c_line, line, file) ((void)0)\n#endif\n", text)
    text, defined = re.subn(r"(/\* AddTraceback \*/\n)", r"#undef __Pyx_AddTraceback\n\1", text)
    text, included = re.subn(r'^(#include "Python\.h"\n)', r'\1#include "imported_module.h"\n', text, flags=re.M)
    if (declared, defined, included) != (1, 1, 1):
        raise CompileError(f"{module}: no __Pyx_AddTraceback or Python.h where Cython used to write them")
    module.write_text(text)


def link(path: Path, to: Path) -> None:
    if path.is_symlink():
        if path.resolve() == to.resolve():
            return
        path.unlink()
    path.symlink_to(to)


def mirror(folder: Path) -> Path:
    """A checkout made of links to this one, without its core: what a debug build in place fills and is run in."""
    package = folder / "tensorrt_lite"
    package.mkdir(parents=True, exist_ok=True)
    for name in ("tests", "tools", "cysrc", "examples", "docs", "pyproject.toml", "README.md"):
        link(folder / name, ROOT / name)
    for path in (ROOT / "tensorrt_lite").iterdir():
        if path.name not in ("_C", "__pycache__"):
            link(package / path.name, path)
    for path in package.iterdir():
        if path.is_symlink() and not path.exists():
            path.unlink()
    return folder


if __name__ == "__main__":
    # a developer's build in place: python -m tools.build_core
    shared = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "tensorrt_lite" / "build"
    builder = Builder(ROOT / "build" / "core", ROOT, cache=shared)
    if builder.debug:
        folder = ROOT / "build" / ("thread" if builder.sanitize == "thread" else "sanitize" if builder.sanitize else "debug")
        builder = Builder(folder, mirror(folder / "checkout"), cache=shared)
    try:
        builder.run()
    except (CompileError, DeclarationError) as failure:
        raise SystemExit(str(failure)) from None  # what is wrong with the sources, without the builder's own frames
    for label, seconds in sorted(builder.times.items(), key=lambda kv: -kv[1])[:12]:
        print(f"{seconds:6.1f} s  {label}", file=sys.stderr)
