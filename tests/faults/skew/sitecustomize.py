"""For a process whose wall clock is wrong: Python loads this before anything else (see ../skewed.py)."""

import os
import time
from collections.abc import Callable

_offset = os.environ["WINDLASS_TEST_OFFSET"]
_real: Callable[[], int] = time.time_ns


def _skewed() -> int:
    with open(_offset) as file:
        return _real() + int(float(file.read()) * 1e9)


time.time_ns = _skewed
