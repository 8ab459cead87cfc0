#!/usr/bin/env python3
"""The TIMM suite: the image models of PyTorch's own benchmarks, and any other of timm."""

import sys

from dynamometer.__main__ import main

if __name__ == "__main__":
    if not sys.flags.safe_path:  # then it is not there
        del sys.path[0]  # a benchmarked model's own `import common` must not meet ours
    raise SystemExit(main("timm_models"))
