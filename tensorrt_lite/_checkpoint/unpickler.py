"""An interpreter of pickle opcodes that builds data and calls nothing but a fixed set of builders.

Globals resolve to entries of the table it is given; a name that is not there raises `pickle.UnpicklingError`. Whatever is
built is counted against the file's budget first (see `budget`): one opcode of a hostile stream is a byte and may ask for
an object of 200, or for a copy of something large that the memo holds. Used by `reader`.
"""

from __future__ import annotations

import struct
from collections import Counter, OrderedDict, defaultdict
from pickle import UnpicklingError
from sys import getsizeof
from typing import TYPE_CHECKING, Any

from .keys import Keys
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_typed_storage = _LazyModule("tensorrt_lite._legacy.typed_storage")

if TYPE_CHECKING:
    from collections.abc import Callable

    from .budget import Budget

__all__ = ["Builder", "Inert", "Layer", "Unpickler", "UnpicklingError", "plain_builders"]

_MARK = object()

# Sizes of objects in memory, and of one more entry in them before a table's real size is known.
_LIST, _DICT, _SET, _TUPLE, _INT, _FLOAT = (getsizeof(x) for x in ([], {}, set(), (), 1, 1.0))
_LIST_START = 40  # the first slots of a list, which take more than they need
_DICT_ENTRY = 60
_SET_ENTRY = 70
_MEMO_ENTRY = 150
# The slots of the stack and of the memo are counted once in so many opcodes.
_OPCODES_A_ROUND = range(2048)
_SLOT = 10
# Items of a container exist twice while they move there from the stack; few do not matter.
_FEW = 4096
# Keys that are put into a dict together, of which most are short strings.
_SINGLES = 32
# Tuples of few parts are looked through whenever they become part of the result, others once.
_SHORT = 16
_MAX_TUPLE_DEPTH = 200
_LONG_KEY = 255
# An instance with its dict. What a function that the user allowed builds beyond that is its own affair.
_ALLOWED_CALL = 300


class Builder:
    """A known global: `build(*args)` is what calling it in the file does; `kind` is the object it stands for.

    `cost` is what a call builds in bytes, where the function does not count that itself.
    """

    __slots__ = ("build", "cost", "kind", "name")

    def __init__(self, name: str, build: Callable[..., Any] | None, kind: Any = None, cost: int = 0) -> None:
        self.name = name
        self.build = build
        self.kind = kind
        self.cost = cost


class Layer:
    """A class of this package's layers: a file may make an instance without arguments and set its attributes."""

    __slots__ = ("target",)

    def __init__(self, target: Any) -> None:
        self.target = target


class Inert:
    """What an unknown global, or anything made with it, becomes while a file is only searched for globals."""

    __slots__ = ()


class Storage:
    """A storage of the file with the dtype its record declares; rebuilt tensors share `untyped`."""

    __slots__ = ("dtype", "numel", "typed", "untyped")

    def __init__(self, untyped: Any, dtype: Any, numel: int) -> None:
        self.typed: Any = None
        self.untyped = untyped
        self.dtype = dtype
        self.numel = numel

    def plain(self, typed: bool = False) -> Any:
        """The storage as a part of the result: bytes by themselves (unless `typed`), elements with their dtype."""
        if self.dtype.itemsize == 1 and not typed:
            return self.untyped
        if self.typed is None:
            self.typed = _typed_storage.TypedStorage._of(self.untyped, self.dtype)
        return self.typed


def _plain(value: Any) -> Any:
    """The object that a value of the interpreter stands for, when it becomes part of the result. Of tuples see `Unpickler._plain`."""
    if isinstance(value, Storage):
        return value.plain()
    if isinstance(value, Builder):
        if value.kind is None:
            raise UnpicklingError(f"{value.name} is not supported as a value")
        return value.kind
    return value.target if isinstance(value, (Allowed, Layer)) else value


class _Stop(Exception):
    """The end of a pickle; its argument is the object."""


class _PlainBuilders:
    """How Python's own data types are built when a file calls them, counted by what their arguments hold."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._keys = Keys(budget)

    def _counted(self, result: Any, before: int) -> Any:
        """The result; its real size replaces what was counted before it was built."""
        self._budget.spend(getsizeof(result) - before)
        return result

    def _count_walk(self, items: Any) -> None:
        """Text has no more than some hundred different elements: what it leaves behind says nothing of the time that it takes."""
        if isinstance(items, (str, bytes, bytearray)):
            self._budget.spend(_SET_ENTRY * len(items))

    def set(self, items: Any = (), kind: Any = set) -> Any:
        self._count_walk(items)
        before = _SET + _SET_ENTRY * len(items)
        self._budget.spend(before)
        return self._counted(kind(map(_plain, self._keys.all_checked(items))), before)

    def frozenset(self, items: Any = ()) -> Any:
        return self.set(items, frozenset)

    def mapping(self, kind: Any, items: Any) -> Any:
        """An OrderedDict or Counter of a dict, or of pairs."""
        if not items:  # as for every tensor
            self._budget.spend(2 * _DICT)
            return kind()
        self._count_walk(items)
        before = 2 * _DICT + 3 * _DICT_ENTRY * len(items)
        self._budget.spend(before)
        result = kind()
        if isinstance(items, dict):
            keys, pairs = items.keys(), items.items()
        else:
            keys, pairs = [key for key, _ in items], items
        self._keys.all_checked(keys, len(items))
        for key, value in pairs:
            result[_plain(key)] = _plain(value)
        return self._counted(result, before)

    def encode(self, text: Any, encoding: Any) -> bytes:
        """How protocol 2 spells bytes."""
        if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):
            raise UnpicklingError("_codecs.encode is supported for text in latin1 only")
        self._budget.spend(_TUPLE + len(text))
        return text.encode("latin1")

    def bytes(self, *args: Any) -> bytes:
        if not args:
            return b""
        if len(args) == 2 or not isinstance(args[0], bytes):
            return self.encode(*args)
        return args[0]

    def bytearray(self, *args: Any) -> bytearray:
        content = self.bytes(*args)
        self._budget.spend(64 + len(content))
        return bytearray(content)


def _complex(real: float, imag: float) -> complex:
    return complex(float(real), float(imag))


def _defaultdict(factory: Any = None) -> defaultdict[Any, Any]:
    kind = factory.kind if isinstance(factory, Builder) else None
    if factory is not None and kind not in (list, dict, set, int, float, str, tuple):
        raise UnpicklingError("a defaultdict's factory may only be a builtin container or number")
    return defaultdict(kind)


def plain_builders(budget: Budget) -> dict[str, Builder]:
    """Builders of Python's own data types, under the names protocols 2 and 4 give them."""
    table: dict[str, Builder] = {}
    plain = _PlainBuilders(budget)

    def add(name: str, build: Callable[..., Any] | None, kind: Any = None, cost: int = 0) -> None:
        table[name] = Builder(name, build, kind, cost)

    for module in ("builtins", "__builtin__"):
        add(f"{module}.set", plain.set, set)
        add(f"{module}.frozenset", plain.frozenset, frozenset)
        add(f"{module}.complex", _complex, complex, getsizeof(1j))
        add(f"{module}.bytes", plain.bytes, bytes)
        add(f"{module}.bytearray", plain.bytearray, bytearray)
        add(f"{module}.dict", lambda: {}, dict, _DICT)  # the tables of modules: created empty, filled by opcodes
        for kind in (list, int, float, str, tuple):
            add(f"{module}.{kind.__name__}", None, kind)
    add("_codecs.encode", plain.encode)
    add("collections.OrderedDict", lambda items=(): plain.mapping(OrderedDict, items), OrderedDict)
    add("collections.Counter", lambda items=(): plain.mapping(Counter, items), Counter)
    add("collections.defaultdict", _defaultdict, defaultdict, getsizeof(defaultdict()))
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
        budget: Budget,
        encoding: str = "utf-8",
    ) -> None:
        self.data = data
        self.position = 0
        self._find_global = find_global
        self._load_storage = load_storage
        self._set_state = set_state
        self._budget = budget
        self._keys = Keys(budget)
        self._encoding = encoding
        self._stack: list[Any] = []
        # Files number what they memoise from 0 upwards, one after the other; other numbers go into the dict.
        self._memo: list[Any] = []
        self._sparse_memo: dict[int, Any] = {}
        self._slots = 0
        self._tuples: dict[int, tuple[Any, Any]] = {}

    def load(self) -> Any:
        """The object of the next pickle. Raises UnpicklingError for anything malformed, unsupported or unknown."""
        self._stack, self._memo, self._sparse_memo, self._slots = [], [], {}, 0
        try:
            return self._run()
        except UnpicklingError:
            raise
        except (IndexError, KeyError, ValueError, TypeError, OverflowError, AttributeError, struct.error) as error:
            if self.position >= len(self.data):
                raise UnpicklingError("pickle data was truncated") from error
            raise UnpicklingError(f"corrupt pickle near byte {self.position}: {str(error)[:200]}") from error

    def _run(self) -> Any:
        data, table = self.data, _OPCODES
        while True:
            try:
                for _ in _OPCODES_A_ROUND:
                    opcode = data[self.position]
                    self.position += 1
                    table[opcode](self)
            except _Stop as end:
                return end.args[0]
            if self._budget.left < 0:
                self._budget.check()
            used = len(self._stack) + len(self._memo)
            if used > self._slots:
                self._budget.spend(_SLOT * (used - self._slots))
                self._slots = used

    def _unsupported(self) -> None:
        opcode = self.data[self.position - 1 : self.position]
        raise UnpicklingError(f"unsupported pickle opcode {bytes(opcode)!r} at byte {self.position - 1}")

    def _stop(self) -> None:
        raise _Stop(self._plain(self._pop_value()))

    def _plain(self, value: Any, depth: int = 0) -> Any:
        """`_plain` of a value; of a tuple the same with the objects that its parts stand for. Arguments of builders keep them as they are."""
        if type(value) is not tuple:
            return _plain(value) if type(value) in _STAND_INS else value
        parts = {type(part) for part in value} if len(value) <= _SHORT else None
        if parts is not None and tuple not in parts and not parts & _STAND_INS:
            return value
        known = self._tuples.get(id(value))
        if known is None:
            if depth > _MAX_TUPLE_DEPTH:
                return value
            self._budget.spend(_TUPLE + _MEMO_ENTRY + 8 * len(value))
            made = tuple(self._plain(part, depth + 1) for part in value)
            same = all(a is b for a, b in zip(made, value, strict=True))
            known = self._tuples[id(value)] = (value, value if same else made)
        return known[1]

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
                size = 8 * (len(stack) - index) if len(stack) - index > _FEW else 0
                self._budget.spend(size)  # the items exist twice for a moment
                items = stack[index + 1 :]
                del stack[index:]
                self._budget.left += size
                return items
        raise UnpicklingError("unexpected opcode: no mark on the stack")

    def _push(self, value: Any) -> None:
        self._stack.append(value)

    def _push_new(self, value: Any, size: int) -> None:
        """Push an object of so many bytes that did not exist before."""
        budget = self._budget
        budget.left -= size
        if budget.left < 0:
            budget.check()
        self._stack.append(value)

    def _byte(self) -> int:
        position = self.position
        self.position = position + 1
        return self.data[position]

    def _small_int(self) -> None:
        position = self.position
        self.position = position + 1
        self._stack.append(self.data[position])

    def _long(self, count: int) -> None:
        self._push_new(int.from_bytes(self._take(count), "little", signed=True), _INT + count)

    def _text(self, count: int) -> None:
        raw = self._take(count)
        # Text that is not ASCII takes up to four bytes for each character.
        self._budget.spend(_TUPLE + 24 + (count if raw.isascii() else 4 * count) + (count if count > _FEW else 0))
        self._stack.append(str(raw, "utf-8", "surrogatepass"))

    def _text_line(self) -> None:
        raw = self._line()
        self._budget.spend(_TUPLE + 24 + 4 * len(raw))
        self._stack.append(str(raw, "raw-unicode-escape"))

    def _old_string(self, count: int) -> None:
        raw = self._take(count)
        self._budget.spend(_TUPLE + 24 + (count if raw.isascii() else 4 * count))
        self._push(raw if self._encoding == "bytes" else raw.decode(self._encoding))

    def _bytes(self, count: int, kind: Any = bytes) -> None:
        self._budget.spend(2 * _TUPLE + (count if kind is bytes else 2 * count))
        raw = self._take(count)
        self._push(raw if kind is bytes else kind(raw))

    # -- containers ---------------------------------------------------------------------------------------------------

    def _append_one(self) -> None:
        value = self._pop_value()
        target = self._stack[-1]
        if type(target) is list:
            self._budget.left -= _SLOT if target else _LIST_START
            target.append(self._plain(value))
        else:
            self._append([value])

    def _append(self, items: list[Any]) -> None:
        target = self._stack[-1]
        if isinstance(target, Inert):
            return
        if not isinstance(target, list):
            raise UnpicklingError(f"items are appended to a {type(target).__name__}")
        count = len(items)
        self._budget.spend((0 if target else _LIST_START) + (_SLOT if count < _FEW else 2 * _SLOT) * count)
        target.extend(map(self._plain, items))

    def _set_items(self, items: list[Any]) -> None:
        target = self._stack[-1]
        if isinstance(target, Inert):
            return
        if not isinstance(target, dict) or len(items) % 2:
            raise UnpicklingError(f"keys and values are set on a {type(target).__name__}")
        before = getsizeof(target)
        expected = len(items) // 2 * _DICT_ENTRY if len(items) > _FEW else 0
        self._budget.spend(expected)
        present, keys = len(target), list(map(self._plain, items[::2]))
        if len(keys) > _SINGLES:
            self._keys.all_checked(keys, present + len(keys))
        else:
            for key in keys:
                if type(key) is not str or len(key) > _LONG_KEY:
                    self._keys.checked(key, present + _SINGLES)
        for key, value in zip(keys, items[1::2], strict=True):
            target[key] = self._plain(value)
        self._keys.grown(target, present)
        self._budget.spend(getsizeof(target) - before - expected)

    def _add_items(self, items: list[Any]) -> None:
        target = self._stack[-1]
        if isinstance(target, Inert):
            return
        if not isinstance(target, set):
            raise UnpicklingError(f"elements are added to a {type(target).__name__}")
        before, expected = getsizeof(target), _SET_ENTRY * len(items)
        self._budget.spend(expected)
        present = len(target)
        target.update(self._keys.all_checked(map(self._plain, items), present + len(items)))
        self._keys.grown(target, present)
        self._budget.spend(getsizeof(target) - before - expected)

    def _new_frozenset(self) -> None:
        items = self._pop_mark()
        before = _SET + _SET_ENTRY * len(items)
        self._budget.spend(before)
        result = frozenset(self._keys.all_checked(map(self._plain, items), len(items)))
        self._push_new(result, getsizeof(result) - before)

    def _new_list(self) -> None:
        items = self._pop_mark()
        self._push_new(items, _LIST + 8 * len(items))

    def _new_tuple(self) -> None:
        items = self._pop_mark()
        count = len(items)
        self._budget.spend(_TUPLE + (8 if count < _FEW else 16) * count)
        self._stack.append(tuple(items))

    def _make_dict(self) -> None:
        items = self._pop_mark()
        self._push_new({}, _DICT)
        self._set_items(items)

    # -- globals ------------------------------------------------------------------------------------------------------

    def _global(self, module: Any, name: Any) -> None:
        if not isinstance(module, str) or not isinstance(name, str):
            raise UnpicklingError("a global's name is not text")
        self._budget.spend(4 * (_TUPLE + len(module) + len(name)))
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
                self._push_new(Inert(), _TUPLE)
                return
            if function.cost:
                self._budget.spend(function.cost)
            self._push(function.build(*args))
        elif isinstance(function, Layer):
            if not new or args or kwargs:
                raise UnpicklingError(f"{function.target.__name__} is made with arguments in the file")
            self._push_new(function.target.__new__(function.target), _ALLOWED_CALL)
        elif isinstance(function, Allowed):
            target = function.target
            self._budget.spend(_ALLOWED_CALL + 8 * len(args))
            plain = list(map(self._plain, args))
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
            # The attributes are copied into the object's own dict.
            self._budget.spend(4 * _DICT + 2 * _DICT_ENTRY * (len(state) if isinstance(state, (dict, tuple)) else 0))
            self._set_state(target, state)

    def _persistent(self, identifier: Any) -> None:
        if isinstance(identifier, tuple) and len(identifier) == 4 and identifier[0] == "module" and isinstance(identifier[1], (Layer, Allowed, Inert)):
            self._push(identifier[1])  # the older format writes a class beside its source
            return
        self._push(self._load_storage(identifier))

    # -- memo ---------------------------------------------------------------------------------------------------------

    def _get(self, index: int) -> None:
        memo = self._memo
        if 0 <= index < len(memo):
            self._stack.append(memo[index])
        elif index in self._sparse_memo:
            self._stack.append(self._sparse_memo[index])
        else:
            raise UnpicklingError(f"memo value {index} is not defined")

    def _put(self, index: int) -> None:
        value, memo = self._stack[-1], self._memo
        if value is _MARK:
            raise UnpicklingError("a mark is stored in the memo")
        if index == len(memo):
            memo.append(value)
            if self._sparse_memo:
                self._sparse_memo.pop(index, None)
        elif 0 <= index < len(memo):
            memo[index] = value
        else:
            self._budget.spend(_MEMO_ENTRY)
            self._sparse_memo[index] = value

    def _tuple(self, count: int) -> None:
        if count == 0:
            self._push(())
            return
        items = self._stack[-count:]
        if len(items) != count or any(item is _MARK for item in items):
            raise UnpicklingError("unexpected mark on the stack")
        self._budget.left -= _TUPLE + 8 * count
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

    def _long_line(self) -> None:
        line = self._line()
        self._push_new(int(line.rstrip(b"L")), _INT + len(line))

    def _int_line(self) -> None:
        line = self._line()
        if line in (b"00", b"01"):
            self._push(line == b"01")
        else:
            self._push_new(int(line), _INT + len(line))


class Allowed:
    """A class or function that the user allowed `load` to call."""

    __slots__ = ("target",)

    def __init__(self, target: Any) -> None:
        self.target = target


_STAND_INS = frozenset((Storage, Builder, Allowed, Layer))


def _opcode_table() -> list[Callable[[Unpickler], None]]:
    u = Unpickler
    handlers: dict[str, Callable[[Unpickler], Any]] = {
        ".": u._stop,
        "\x80": lambda s: s._take(1),  # PROTO: all opcodes are accepted under any protocol
        "\x95": lambda s: s._take(8),  # FRAME: a hint for buffering
        "(": lambda s: s._stack.append(_MARK),
        "0": u._pop,
        "1": lambda s: s._pop_mark(),
        "2": lambda s: s._push(s._stack[-1]),
        "N": lambda s: s._push(None),
        "\x88": lambda s: s._push(True),
        "\x89": lambda s: s._push(False),
        "I": u._int_line,
        "L": u._long_line,
        "F": lambda s: s._push_new(float(s._line()), _FLOAT),
        "J": lambda s: s._push_new(s._number("<i"), _INT),
        "K": u._small_int,
        "M": lambda s: s._push_new(s._number("<H"), _INT),
        "\x8a": lambda s: s._long(s._byte()),
        "\x8b": lambda s: s._long(s._number("<i")),
        "G": lambda s: s._push_new(s._number(">d"), _FLOAT),
        "V": u._text_line,
        "X": lambda s: s._text(s._number("<I")),
        "\x8c": lambda s: s._text(s._byte()),
        "\x8d": lambda s: s._text(s._number("<Q")),
        "T": lambda s: s._old_string(s._number("<i")),
        "U": lambda s: s._old_string(s._byte()),
        "B": lambda s: s._bytes(s._number("<I")),
        "C": lambda s: s._bytes(s._byte()),
        "\x8e": lambda s: s._bytes(s._number("<Q")),
        "\x96": lambda s: s._bytes(s._number("<Q"), bytearray),
        "]": lambda s: s._push_new([], _LIST),
        "}": lambda s: s._push_new({}, _DICT),
        "\x8f": lambda s: s._push_new(set(), _SET),
        ")": lambda s: s._tuple(0),
        "a": u._append_one,
        "e": lambda s: s._append(s._pop_mark()),
        "s": u._set_one,
        "u": lambda s: s._set_items(s._pop_mark()),
        "\x90": lambda s: s._add_items(s._pop_mark()),
        "\x91": u._new_frozenset,
        "t": u._new_tuple,
        "\x85": lambda s: s._tuple(1),
        "\x86": lambda s: s._tuple(2),
        "\x87": lambda s: s._tuple(3),
        "l": u._new_list,
        "d": u._make_dict,
        "g": lambda s: s._get(int(s._line())),
        "h": lambda s: s._get(s._byte()),
        "j": lambda s: s._get(s._number("<I")),
        "p": lambda s: s._put(int(s._line())),
        "q": lambda s: s._put(s._byte()),
        "r": lambda s: s._put(s._number("<I")),
        "\x94": lambda s: s._put(len(s._memo) + len(s._sparse_memo)),
        "c": u._global_line,
        "\x93": u._stack_global,
        "R": u._reduce,
        "\x81": u._new_object,
        "\x92": lambda s: s._new_object(True),
        "b": u._build,
        "Q": lambda s: s._persistent(s._pop_value()),
        "P": lambda s: s._persistent(s._line()),
    }
    table: list[Callable[[Unpickler], None]] = [u._unsupported] * 256
    for code, handler in handlers.items():
        table[ord(code)] = handler
    return table


_OPCODES = _opcode_table()
