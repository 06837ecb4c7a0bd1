"""Puts tensorrt_lite's alias in force when a program first asks for torch, where TENSORRT_LITE_ALIAS is 1; imports nothing until then.

`tensorrt-lite alias --install` copies this file into site-packages, where a .pth file imports it at the start of the interpreter; `tensorrt-lite run
--children` has it found as sitecustomize, and the environment's own sitecustomize is run behind it.
"""

import os
import sys

_DEFAULT = "0"  # "1" in what `alias --install --always` writes


class _WhenAsked:
    """A finder that puts the alias in its place and answers through it."""

    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        if fullname == "torch" or fullname.startswith("torch."):
            return cls._alias().find_spec(fullname, path, target)
        return None

    @classmethod
    def find_distributions(cls, context=None):
        if getattr(context, "name", None) in (None, "torch"):
            return cls._alias().find_distributions(context)
        return []

    @classmethod
    def _alias(cls):
        if cls in sys.meta_path:
            sys.meta_path.remove(cls)
        from tensorrt_lite.compat import install

        install()
        return sys.meta_path[0]


if os.environ.get("TENSORRT_LITE_ALIAS", _DEFAULT) == "1" and not any(type(f).__name__ == "_Alias" or getattr(f, "__name__", "") == "_WhenAsked" for f in sys.meta_path):
    sys.meta_path.insert(0, _WhenAsked)

if __name__ == "sitecustomize":
    _here = os.path.dirname(os.path.abspath(__file__))
    for _folder in sys.path:
        _file = os.path.join(_folder, "sitecustomize.py")
        if os.path.abspath(_folder) != _here and os.path.isfile(_file):
            with open(_file, "rb") as _source:
                exec(compile(_source.read(), _file, "exec"), {"__name__": "sitecustomize", "__file__": _file})
            break
