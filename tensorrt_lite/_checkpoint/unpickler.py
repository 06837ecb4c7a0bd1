"""An interpreter of pickle opcodes that builds data and calls nothing but a fixed set of builders.

Globals resolve to entries of the table it is given; a name that is not there raises `pickle.UnpicklingError`. Reads are
bounded by the input, so that a hostile stream costs no more memory than its own size. Used by `reader`.
"""

from __future__ import annotations

import struct
from collections import Counter, OrderedDict, defaultdict
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Builder", "Inert", "Unpickler", "UnpicklingError", "plain_builders"]

# Tuples are hashed by recursion without a limit, and without a cache where parts are shared: a key is bounded first.
_MAX_KEY_DEPTH = 50
_MAX_KEY_PARTS = 10_000

_MARK = object()


class Builder:
    """A known global: `build(*args)` is what calling it in the file does; `kind` is the object it stands for."""

    __slots__ = ("build", "kind", "name")

    def __init__(self, name: str, build: Callable[..., Any] | None, kind: Any = None) -> None:
        self.name = name
        self.build = build
        self.kind = kind


class Inert:
    """What an unknown global, or anything made with it, becomes while a file is only searched for globals."""

    __slots__ = ()


class Storage:
    """A storage of the file with the dtype its record declares; rebuilt tensors share `untyped`."""

    __slots__ = ("dtype", "numel", "untyped")

    def __init__(self, untyped: Any, dtype: Any, numel: int) -> None:
        self.untyped = untyped
        self.dtype = dtype
        self.numel = numel


def check_key(key: Any) -> Any:
    """The key itself. Raises UnpicklingError for tuples nested so that hashing them could exhaust stack or time."""
    if type(key) is not tuple:
        return key
    level, parts = [key], 0
    for _ in range(_MAX_KEY_DEPTH):
        level = [part for parent in level for part in parent if type(part) is tuple]
        parts += len(level)
        if not level:
            return key
        if parts > _MAX_KEY_PARTS:
            break
    raise UnpicklingError("corrupt or hostile file: a key is a tuple nested too deeply")


def _plain(value: Any) -> Any:
    """The object that a value of the interpreter stands for, when it becomes part of the result."""
    if isinstance(value, Storage):
        return value.untyped
    if isinstance(value, Builder):
        if value.kind is None:
            raise UnpicklingError(f"{value.name} is not supported as a value")
        return value.kind
    return value.target if isinstance(value, Allowed) else value


def _pairs(value: Any) -> list[tuple[Any, Any]]:
    items = value.items() if isinstance(value, dict) else value
    return [(check_key(key), item) for key, item in items]


def _encode(text: str, encoding: str) -> bytes:
    """How protocol 2 spells bytes."""
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):
        raise UnpicklingError(f"_codecs.encode is supported for latin1 only, but got {encoding!r}")
    return text.encode("latin1")


def _bytes(*args: Any) -> bytes:
    if not args:
        return b""
    if len(args) == 2 or not isinstance(args[0], bytes):
        return _encode(*args)
    return args[0]


def _bytearray(*args: Any) -> bytearray:
    return bytearray(_bytes(*args))


def _complex(real: float, imag: float) -> complex:
    return complex(float(real), float(imag))


def _defaultdict(factory: Any = None) -> defaultdict[Any, Any]:
    kind = factory.kind if isinstance(factory, Builder) else None
    if factory is not None and kind not in (list, dict, set, int, float, str, tuple):
        raise UnpicklingError("a defaultdict's factory may only be a builtin container or number")
    return defaultdict(kind)


def plain_builders() -> dict[str, Builder]:
    """Builders of Python's own data types, under the names protocols 2 and 4 give them."""
    table: dict[str, Builder] = {}

    def add(name: str, build: Callable[..., Any] | None, kind: Any = None) -> None:
        table[name] = Builder(name, build, kind)

    for module in ("builtins", "__builtin__"):
        add(f"{module}.set", lambda items=(): {check_key(item) for item in items}, set)
        add(f"{module}.frozenset", lambda items=(): frozenset(check_key(item) for item in items), frozenset)
        add(f"{module}.complex", _complex, complex)
        add(f"{module}.bytes", _bytes, bytes)
        add(f"{module}.bytearray", _bytearray, bytearray)
        add(f"{module}.dict", lambda: {}, dict)  # the tables of modules: created empty, filled by opcodes
        for kind in (list, int, float, str, tuple):
            add(f"{module}.{kind.__name__}", None, kind)
    add("_codecs.encode", _encode)
    add("collections.OrderedDict", lambda items=(): OrderedDict(_pairs(items)), OrderedDict)
    add("collections.Counter", lambda items=(): Counter(dict(_pairs(items))), Counter)
    add("collections.defaultdict", _defaultdict, defaultdict)
    return table


class Unpickler:
    """Interpreter over `data` from `position`; `load` may be called again where several pickles follow each other.

    find_global(module, name) gives a Builder, an Inert, or a class or function that the user allowed to be called;
    load_storage(persistent_id) gives a Storage; set_state(object, state) applies state to objects of the builders.
    """

    def __init__(
        self,
        data: bytes,
        find_global: Callable[[str, str], Any],
        load_storage: Callable[[Any], Any],
        set_state: Callable[[Any, Any], None],
        encoding: str = "utf-8",
    ) -> None:
        self.data = data
        self.position = 0
        self._find_global = find_global
        self._load_storage = load_storage
        self._set_state = set_state
        self._encoding = encoding
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}

    def load(self) -> Any:
        """The object of the next pickle. Raises UnpicklingError for anything malformed, unsupported or unknown."""
        self._stack, self._memo = [], {}
        try:
            return self._run()
        except UnpicklingError:
            raise
        except (IndexError, KeyError, ValueError, TypeError, OverflowError, AttributeError, struct.error) as error:
            raise UnpicklingError(f"corrupt pickle near byte {self.position}: {error}") from error

    def _run(self) -> Any:
        data, table = self.data, _OPCODES
        while True:
            if self.position >= len(data):
                raise UnpicklingError("pickle data was truncated")
            opcode = data[self.position]
            self.position += 1
            if opcode == 0x2E:  # STOP
                return _plain(self._pop_value())
            handler = table.get(opcode)
            if handler is None:
                raise UnpicklingError(f"unsupported pickle opcode {bytes([opcode])!r} at byte {self.position - 1}")
            handler(self)

    # -- reading ------------------------------------------------------------------------------------------------------

    def _take(self, count: int) -> bytes:
        end = self.position + count
        if count < 0 or end > len(self.data):
            raise UnpicklingError("pickle data was truncated")
        chunk = self.data[self.position : end]
        self.position = end
        return chunk

    def _number(self, layout: str) -> Any:
        return struct.unpack(layout, self._take(struct.calcsize(layout)))[0]

    def _line(self) -> bytes:
        end = self.data.find(b"\n", self.position)
        if end < 0:
            raise UnpicklingError("pickle data was truncated")
        line = self.data[self.position : end]
        self.position = end + 1
        return line

    def _pop_mark(self) -> list[Any]:
        stack = self._stack
        for index in range(len(stack) - 1, -1, -1):
            if stack[index] is _MARK:
                items = stack[index + 1 :]
                del stack[index:]
                return items
        raise UnpicklingError("unexpected opcode: no mark on the stack")

    def _push(self, value: Any) -> None:
        self._stack.append(value)

    def _text(self, count: int) -> None:
        self._push(self._take(count).decode("utf-8", "surrogatepass"))

    def _old_string(self, count: int) -> None:
        raw = self._take(count)
        self._push(raw if self._encoding == "bytes" else raw.decode(self._encoding))

    # -- containers ---------------------------------------------------------------------------------------------------

    def _append(self, items: list[Any]) -> None:
        target = self._stack[-1]
        if isinstance(target, Inert):
            return
        if not isinstance(target, list):
            raise UnpicklingError(f"items are appended to a {type(target).__name__}")
        target.extend(map(_plain, items))

    def _set_items(self, items: list[Any]) -> None:
        target = self._stack[-1]
        if isinstance(target, Inert):
            return
        if not isinstance(target, dict) or len(items) % 2:
            raise UnpicklingError(f"keys and values are set on a {type(target).__name__}")
        for key, value in zip(items[::2], items[1::2], strict=True):
            target[check_key(key)] = _plain(value)

    def _add_items(self, items: list[Any]) -> None:
        target = self._stack[-1]
        if isinstance(target, Inert):
            return
        if not isinstance(target, set):
            raise UnpicklingError(f"elements are added to a {type(target).__name__}")
        target.update(map(check_key, items))

    def _make_dict(self) -> None:
        items = self._pop_mark()
        self._push({})
        self._set_items(items)

    # -- globals ------------------------------------------------------------------------------------------------------

    def _global(self, module: Any, name: Any) -> None:
        if not isinstance(module, str) or not isinstance(name, str):
            raise UnpicklingError("a global's name is not text")
        self._push(self._find_global(module, name))

    def _call(self, function: Any, args: Any, new: bool = False, kwargs: Any = None) -> None:
        if isinstance(function, Inert):
            self._push(function)
            return
        if not isinstance(args, tuple):
            raise UnpicklingError("arguments of a global are not a tuple")
        if isinstance(function, Builder):
            if function.build is None or kwargs:
                raise UnpicklingError(f"{function.name} cannot be called with these arguments in a file")
            if any(isinstance(arg, Inert) for arg in args):
                self._push(Inert())
                return
            self._push(function.build(*args))
        elif isinstance(function, Allowed):
            target = function.target
            plain = list(map(_plain, args))
            self._push(target.__new__(target, *plain, **(kwargs or {})) if new else target(*plain))
        else:
            raise UnpicklingError(f"a {type(function).__name__} is called in the file")

    def _reduce(self) -> None:
        args = self._stack.pop()
        self._call(self._stack.pop(), args)

    def _new_object(self, with_kwargs: bool = False) -> None:
        kwargs = self._stack.pop() if with_kwargs else None
        args = self._stack.pop()
        self._call(self._stack.pop(), args, new=True, kwargs=kwargs)

    def _build(self) -> None:
        state = self._stack.pop()
        target = self._stack[-1]
        if not isinstance(target, Inert):
            self._set_state(target, state)

    def _persistent(self, identifier: Any) -> None:
        self._push(self._load_storage(identifier))

    # -- memo ---------------------------------------------------------------------------------------------------------

    def _get(self, index: int) -> None:
        if index not in self._memo:
            raise UnpicklingError(f"memo value {index} is not defined")
        self._push(self._memo[index])

    def _put(self, index: int) -> None:
        value = self._stack[-1]
        if value is _MARK:
            raise UnpicklingError("a mark is stored in the memo")
        self._memo[index] = value

    def _tuple(self, count: int) -> None:
        if count == 0:
            self._push(())
            return
        items = self._stack[-count:]
        if len(items) != count or any(item is _MARK for item in items):
            raise UnpicklingError("unexpected mark on the stack")
        self._stack[-count:] = [tuple(items)]

    def _pop(self) -> None:
        self._stack.pop()

    def _pop_value(self) -> Any:
        value = self._stack.pop()
        if value is _MARK:
            raise UnpicklingError("unexpected mark on the stack")
        return value

    def _set_one(self) -> None:
        value, key = self._pop_value(), self._pop_value()
        self._set_items([key, value])

    def _global_line(self) -> None:
        module = self._line().decode("utf-8")
        self._global(module, self._line().decode("utf-8"))

    def _stack_global(self) -> None:
        name = self._stack.pop()
        self._global(self._stack.pop(), name)

    def _int_line(self) -> None:
        line = self._line()
        self._push({b"00": False, b"01": True}.get(line) if line in (b"00", b"01") else int(line))


class Allowed:
    """A class or function that the user allowed `load` to call."""

    __slots__ = ("target",)

    def __init__(self, target: Any) -> None:
        self.target = target


def _opcode_table() -> dict[int, Callable[[Unpickler], None]]:
    u = Unpickler
    return {
        ord(code): handler
        for code, handler in {
            "\x80": lambda s: s._take(1),  # PROTO: all opcodes are accepted under any protocol
            "\x95": lambda s: s._take(8),  # FRAME: a hint for buffering
            "(": lambda s: s._push(_MARK),
            "0": u._pop,
            "1": lambda s: s._pop_mark(),
            "2": lambda s: s._push(s._stack[-1]),
            "N": lambda s: s._push(None),
            "\x88": lambda s: s._push(True),
            "\x89": lambda s: s._push(False),
            "I": u._int_line,
            "L": lambda s: s._push(int(s._line().rstrip(b"L"))),
            "F": lambda s: s._push(float(s._line())),
            "J": lambda s: s._push(s._number("<i")),
            "K": lambda s: s._push(s._number("<B")),
            "M": lambda s: s._push(s._number("<H")),
            "\x8a": lambda s: s._push(int.from_bytes(s._take(s._number("<B")), "little", signed=True)),
            "\x8b": lambda s: s._push(int.from_bytes(s._take(s._number("<i")), "little", signed=True)),
            "G": lambda s: s._push(s._number(">d")),
            "V": lambda s: s._push(s._line().decode("raw-unicode-escape")),
            "X": lambda s: s._text(s._number("<I")),
            "\x8c": lambda s: s._text(s._number("<B")),
            "\x8d": lambda s: s._text(s._number("<Q")),
            "T": lambda s: s._old_string(s._number("<i")),
            "U": lambda s: s._old_string(s._number("<B")),
            "B": lambda s: s._push(s._take(s._number("<I"))),
            "C": lambda s: s._push(s._take(s._number("<B"))),
            "\x8e": lambda s: s._push(s._take(s._number("<Q"))),
            "\x96": lambda s: s._push(bytearray(s._take(s._number("<Q")))),
            "]": lambda s: s._push([]),
            "}": lambda s: s._push({}),
            "\x8f": lambda s: s._push(set()),
            ")": lambda s: s._tuple(0),
            "a": lambda s: s._append([s._pop_value()]),
            "e": lambda s: s._append(s._pop_mark()),
            "s": u._set_one,
            "u": lambda s: s._set_items(s._pop_mark()),
            "\x90": lambda s: s._add_items(s._pop_mark()),
            "\x91": lambda s: s._push(frozenset(map(check_key, s._pop_mark()))),
            "t": lambda s: s._push(tuple(s._pop_mark())),
            "\x85": lambda s: s._tuple(1),
            "\x86": lambda s: s._tuple(2),
            "\x87": lambda s: s._tuple(3),
            "l": lambda s: s._push(s._pop_mark()),
            "d": u._make_dict,
            "g": lambda s: s._get(int(s._line())),
            "h": lambda s: s._get(s._number("<B")),
            "j": lambda s: s._get(s._number("<I")),
            "p": lambda s: s._put(int(s._line())),
            "q": lambda s: s._put(s._number("<B")),
            "r": lambda s: s._put(s._number("<I")),
            "\x94": lambda s: s._put(len(s._memo)),
            "c": u._global_line,
            "\x93": u._stack_global,
            "R": u._reduce,
            "\x81": u._new_object,
            "\x92": lambda s: s._new_object(True),
            "b": u._build,
            "Q": lambda s: s._persistent(s._pop_value()),
            "P": lambda s: s._persistent(s._line()),
        }.items()
    }


_OPCODES = _opcode_table()
