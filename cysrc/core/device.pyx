"""Devices, layouts and memory formats: immutable values with PyTorch's names."""
from _thread import _local
from cpython.object cimport PyObject
from tensorrt_lite._C.core.free_threading cimport keep_for_ever

cdef extern from *:
    """
    static __thread PyObject* trt_default_device = NULL;      /* NULL: the CPU */
    """
    PyObject* trt_default_device

cdef list _names = ["cpu", "cuda", "meta", "privateuseone"]
BUILT_IN = (DEV_CPU, DEV_CUDA, DEV_META)
cdef int _accelerator = DEV_CUDA               # whose index a bare number is


cdef str device_type_name(int device_type):
    return _names[device_type] if device_type < len(_names) else f"custom device {device_type - DEV_CUSTOM + 1}"


cdef str place_text(int place):
    """A device's type and, where it has one, its index, as a place holds both: cuda:0."""
    return f"{device_type_name(place & 0xFF)}:{(place >> 8) - 1}" if has_index(place & 0xFF) else device_type_name(place & 0xFF)


cdef class device:
    """A place where tensors live: ``device('cpu')``, ``device('cuda', 0)``, ``device('meta')``."""

    def __init__(self, type="cpu", index=None):
        cdef object text
        if isinstance(type, device):
            self.code = (<device>type).code
            self.index = (<device>type).index
            return
        if isinstance(type, int) and not isinstance(type, bool):
            if type < 0:
                raise RuntimeError("Device index must not be negative")
            self.code = _accelerator
            self.index = int(type)
            return
        if not isinstance(type, str):
            raise TypeError(f"device(): argument 'type' (position 1) must be str, not {type.__class__.__name__}")
        name, colon, text = type.partition(":")
        if name == "privateuseone":
            self.code = DEV_CUSTOM
        elif name in _names:
            self.code = _names.index(name)
        else:
            raise RuntimeError(f"Expected one of {', '.join(_names)} device type at start of device string: {type}")
        if colon:
            if index is not None:
                raise RuntimeError(f"type (string) must not include an index because index was passed explicitly: {type}")
            if not text.isdigit() or len(text) > 1 and text[0] == "0":
                raise RuntimeError(f"Invalid device string: '{type}'")
            index = int(text)
        if index is not None:
            if isinstance(index, (bool, float)) or not hasattr(index, "__index__"):
                raise TypeError(f"device(): argument 'index' (position 2) must be int, not {index.__class__.__name__}")
            index = index.__index__()
            if index < 0:
                raise RuntimeError("Device index must not be negative")
            if index > 127:
                raise RuntimeError(f"Device index must be at most 127, got {index}")
        self.index = index

    @property
    def type(self):
        return _names[self.code]

    def __repr__(self):
        if self.index is None:
            return f"device(type='{self.type}')"
        return f"device(type='{self.type}', index={self.index})"

    def __str__(self):
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other):
        if not isinstance(other, device):
            return NotImplemented
        return self.code == (<device>other).code and self.index == (<device>other).index

    def __hash__(self):
        return hash((self.code, self.index))

    def __reduce__(self):
        return device, ((self.type,) if self.index is None else (self.type, self.index))

    def __enter__(self):
        if not hasattr(_entered, "devices"):
            _entered.devices = []
        _entered.devices.append(default_device())
        _set_default(self)
        return self

    def __exit__(self, *exc):
        _set_default(_entered.devices.pop())


cdef object _entered = _local()                # .devices: what a thread's `with device` statements go back to
cdef dict _chosen = {}                         # keeps each device that has been some thread's default
cdef device cpu_device = device("cpu")
keep_for_ever(cpu_device)


cdef _set_default(device d):
    global trt_default_device
    d = _chosen.setdefault((d.code, d.index), d)
    trt_default_device = <PyObject*>d


cdef device make_device(int code, object index):
    cdef device d
    if code == DEV_CPU and index is None:
        return cpu_device
    d = device.__new__(device)
    d.code = code
    d.index = index
    return d


cdef device parse_device(object x):
    if x is None:
        return default_device()
    if type(x) is device:
        return <device>x
    return device(x)


cdef device default_device():
    return cpu_device if trt_default_device == NULL else <device><object>trt_default_device


def set_default_device(d):
    """Set the device on which factory functions of the calling thread create tensors.

    Parameters:
        d (device, str or None): the device; None is the CPU

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.set_default_device("cpu")
        >>> trt.ones(2).device
        device(type='cpu')
        >>> trt.set_default_device(None)
    """
    _set_default(cpu_device if d is None else parse_device(d))


def get_default_device():
    """Return the device on which factory functions create tensors.

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.get_default_device()
        device(type='cpu')
    """
    return default_device()


def rename_privateuse1_backend(str name not None):
    """Give the registered custom backend a device name, once."""
    if _names[DEV_CUSTOM] not in ("privateuseone", name):
        raise RuntimeError(f"torch.register_privateuse1_backend() has already been set! Current backend: {_names[DEV_CUSTOM]}")
    check_name(name)
    _names[DEV_CUSTOM] = name


cdef int check_name(str name) except -1:
    if name in _names[:DEV_CUSTOM]:
        raise RuntimeError(f"'{name}' is the name of a built-in device")
    if not name.isidentifier():
        raise RuntimeError(f"a device's name must be an identifier, got '{name}'")
    return 0


def _name_custom_device(str name not None):
    """The code of a custom device type of that name: the first is PyTorch's PrivateUse1, others come behind it. RuntimeError where all are named."""
    check_name(name)
    if name in _names:
        return _names.index(name)
    if _names[DEV_CUSTOM] == "privateuseone":
        _names[DEV_CUSTOM] = name
        return DEV_CUSTOM
    if len(_names) > LAST_CUSTOM:
        raise RuntimeError(f"there are {LAST_CUSTOM - DEV_CUSTOM + 1} custom device types already")
    _names.append(name)
    return len(_names) - 1


def _use_accelerator(int code):
    """Which device type a bare index means."""
    global _accelerator
    _accelerator = code


def _accelerator_type():
    return _names[_accelerator]


def _custom_backend_name():
    return _names[DEV_CUSTOM]


cdef class layout:
    """How elements are arranged: ``strided``, or a sparse one of which only some elements are stored."""

    def __init__(self):
        raise TypeError("cannot create 'torch.layout' instances")

    def __repr__(self):
        return "torch." + self.name

    def __reduce__(self):
        return _layout_by_name, (self.name,)


cdef class memory_format:
    """Order of dimensions in memory: contiguous, channels_last, channels_last_3d, preserve."""

    def __init__(self):
        raise TypeError("cannot create 'torch.memory_format' instances")

    def __repr__(self):
        return "torch." + self.name

    def __reduce__(self):
        return _memory_format_by_code, (self.code,)


cdef layout _layout(str name):
    cdef layout x = layout.__new__(layout)
    x.name = name
    keep_for_ever(x)
    return x


cdef memory_format _format(str name, int code):
    cdef memory_format x = memory_format.__new__(memory_format)
    x.name = name
    x.code = code
    keep_for_ever(x)
    return x


strided = _layout("strided")
sparse_coo = _layout("sparse_coo")
sparse_csr = _layout("sparse_csr")
sparse_csc = _layout("sparse_csc")
sparse_bsr = _layout("sparse_bsr")
sparse_bsc = _layout("sparse_bsc")
jagged = _layout("jagged")
contiguous_format = _format("contiguous_format", MF_CONTIGUOUS)
preserve_format = _format("preserve_format", MF_PRESERVE)
channels_last = _format("channels_last", MF_CHANNELS_LAST)
channels_last_3d = _format("channels_last_3d", MF_CHANNELS_LAST_3D)


def _layout_by_name(str name not None):
    return {x.name: x for x in (strided, sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc)}[name]


def _memory_format_by_code(int code):
    return (contiguous_format, preserve_format, channels_last, channels_last_3d)[code]
