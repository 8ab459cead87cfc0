"""The `dynamometer` command."""

from __future__ import annotations

import sys


def main(suite: str | None = None) -> int:
    """Run the command line, or say what has to be installed first.

    Args:
        suite: name of the suite a script stands for; `None` for the whole command.
    """
    try:
        from dynamometer.common import cli
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("dynamometer"):
            raise
        print(  # noqa: T201  there is no click to print with
            f"error: the package {error.name} is not installed for {sys.executable}. In a"
            " checkout run `make setup`, then `. .venv/bin/activate`; elsewhere"
            " `pip install dynamometer`.",
            file=sys.stderr,
        )
        return 2
    return cli.main(suite)


if __name__ == "__main__":
    raise SystemExit(main())
