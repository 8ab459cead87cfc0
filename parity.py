#!/usr/bin/env python3
"""A corpus of modules taken from GitHub projects: which work compiled, in graphs or as one."""

import sys

from dynamometer.__main__ import main

if __name__ == "__main__":
    if not sys.flags.safe_path:  # then it is not there
        del sys.path[0]  # a benchmarked model's own `import common` must not meet ours
    raise SystemExit(main("parity"))
