"""The clock that measures, whatever a model makes of Python's."""

from __future__ import annotations

import time


class Clock:
    """Functions of `time`, kept where nobody looks for them by name.

    A model may assign others to that module, and freezegun to every module that has one of them.
    """

    now = staticmethod(time.perf_counter)
    nap = staticmethod(time.sleep)
