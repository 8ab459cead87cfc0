"""Run by its path: compiles a file and writes what that gives, within limits of its own.

A few KB of text may be compiled into any size, such as each `finally` within another into twice
what it holds. Nothing but Python is imported, as it is started for each file.
"""

from __future__ import annotations

import marshal
import resource
import sys

_MOST_CPU_S = 2
_MOST_BYTES = 256 << 20
_MOST_CODE_BYTES = 8 << 20
"""Of what is compiled, which its reader then holds several times."""


def main(path: str, optimize: str) -> None:
    """Write the code of a file to standard output.

    Raises:
        Exception: whatever Python raises of a file that can't be compiled, or not within limits.
    """
    limits = {"RLIMIT_CORE": 0, "RLIMIT_CPU": _MOST_CPU_S, "RLIMIT_DATA": _MOST_BYTES}
    for name, most in limits.items():
        resource.setrlimit(getattr(resource, name), (most, most))
    with open(path, "rb") as file:  # noqa: PTH123  importing pathlib takes as long as all else
        text = file.read()
    code = compile(text, path, "exec", dont_inherit=True, optimize=int(optimize))
    found = marshal.dumps(code)
    if len(found) > _MOST_CODE_BYTES:
        raise MemoryError
    sys.stdout.buffer.write(found)


if __name__ == "__main__":
    main(*sys.argv[1:])
