"""`python -m tensorrt_lite.bench`: the same as `tensorrt-lite bench`."""

import sys

from .cli import main

sys.exit(main())
