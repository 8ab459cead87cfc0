"""The `dynamometer` command."""

from __future__ import annotations

import gc
import signal
import sys

_NEEDED = frozenset({"click", "jinja2", "msgspec", "rich", "rtoml", "scipy", "tabulate"})
"""What the command line imports of setup.cfg's `install_requires`; torch is for workers."""


def main(suite: str | None = None) -> int:
    """Run the command line, or say what has to be installed first.

    Args:
        suite: name of the suite a script stands for; `None` for the whole command.
    """
    gc.disable()  # nothing that start-up makes is garbage, and looking takes 6 ms of 70
    try:
        from dynamometer.common.command_line import cli

        return cli.main(suite)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in _NEEDED:
            from dynamometer.common.ending import report_fault

            return report_fault(error)
        print(  # noqa: T201  there is no click to print with
            f"error: the package {package} is not installed for {sys.executable}. In a clone"
            " run `make setup`, then `. .venv/bin/activate`; for another environment run"
            " `pip install .` there.",
            file=sys.stderr,
        )
        return 2
    except KeyboardInterrupt:  # once more, after that was said
        return 128 + signal.SIGINT
    except MemoryError:  # of an import: 1, which Python would give, means that results have changed
        sys.stderr.write("error: no memory is left, or no more is allowed (ulimit -v)\n")
        return 3
    finally:
        # All is said and closed: one more Ctrl-C must not change the exit code.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        gc.freeze()
        gc.enable()


if __name__ == "__main__":
    raise SystemExit(main())
