"""Measures for `bisect`: writes a run of what a file of the repository says is true of it.

The command that is typed only asks for it (`ask_for_run.py`), as importing what this needs takes
longer than all else.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingUnixStreamServer
from threading import Thread
from typing import TYPE_CHECKING

import factories
import msgspec
import simulated_runs

from dynamometer.results.store import store
from dynamometer.results.values.cases import Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator


def measure(state: Path, options: list[str]) -> int:
    """Read what is true, and write a run, or fail as is said."""
    true = json.loads(state.read_text())
    if true.get("exit"):
        return int(true["exit"])
    study = true.get("study", "speedup")
    if study != "speedup" and "-r" in options:
        return 2  # as a run that measures nothing twice does
    directory = Path(options[options.index("--output-dir") + 1]) / "made-up"
    replicates = int(options[options.index("-r") + 1]) if "-r" in options else 3
    failing = frozenset({0}) if true.get("fails") else frozenset[int]()
    made = simulated_runs.Made(models=1, slower={0: true.get("slower", 1.0)}, failing=failing)
    records = simulated_runs.records(made, 100 * true["seed"] + replicates, replicates)
    kept = records[: true.get("keeps", replicates)]
    plan = factories.plan(factories.model_spec("model_00"), experiments=(study,))
    protocol = Protocol(replicates=replicates, most_replicates=replicates)
    manifest = factories.manifest(msgspec.structs.replace(plan, protocol=protocol))
    store.create(directory, manifest)
    with store.RunStore(directory) as events:
        for each in kept:
            events.append(msgspec.structs.replace(each, run_id=manifest.run_id, case=plan.cases[0]))
    return 0


class _Asked(StreamRequestHandler):
    """Somebody asks for a run: a line with the words of the command, answered by its exit code."""

    def handle(self) -> None:
        """Measure, and say how that ended."""
        state, *options = json.loads(self.rfile.readline())
        self.wfile.write(str(measure(Path(state), options)).encode())


@contextmanager
def measuring_at(address: Path) -> Iterator[None]:
    """Measure for whoever asks at a socket."""
    with ThreadingUnixStreamServer(str(address), _Asked) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()
