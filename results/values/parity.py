"""Whether a model works compiled, in as many graphs as it takes and as one. Pure values."""

from __future__ import annotations

from dynamometer.results.values.cases import Value
from dynamometer.results.values.coverage import Coverage
from dynamometer.results.values.records import Outcome, Stage, Status


class FullGraph(Value, frozen=True, kw_only=True):
    """How an arm ended where Dynamo had to capture all of the model in one graph, or fail."""

    arm: str
    outcome: Outcome
    is_inferred: bool = False
    """Whether it follows from the other mode, in which one graph was all there was."""


NOT_REACHED = Outcome(
    status=Status.SKIP,
    stage=Stage.WORKER,
    reason="not run as one graph: the process had ended before",
)
UNDER_WAY = Outcome(
    status=Status.CRASH,
    stage=Stage.WORKER,
    reason="the process ended while it was run as one graph",
)
"""Of arms that have yet to be run as one graph, and of the one that is: it is what stands of them
if the process ends, the last but for how it ended."""

NOT_IMPORTED, NOT_BUILT, NOT_RUN = "it can't be imported", "it can't be built", "it can't be called"
NO_FORWARD = "it has no forward"
"""How the reason of a class begins that no arguments were found for."""
NOT_A_MODULE, NOT_READ = "it is no class of nn.Module", "its file can't be read"
"""How the reason begins of what is no class that could be tried."""
NO_TEST_CASE = "it is no test case"
"""How the reason begins of what a corpus holds in the place of a test case."""
FORM = "a test case is (Class, init_args, forward_args)"


class CorpusEntry(Value, frozen=True, kw_only=True):
    """Arguments that were found for a class of a project, as a corpus holds them."""

    module: str
    """That defines it."""
    project: str = ""
    """That it is of; the first part of the module's name where nothing says so."""
    class_name: str
    init_args: str
    """An expression for a list and a dictionary."""
    forward_args: str
    root: str | None = None
    """Folder that the module is imported from; `None` for what is installed."""
    beside: str | None = None
    """Folder that its project may import from as well, as the last."""


class Parity(Value, frozen=True, kw_only=True):
    """What is known of a model's arms beside whether each computes what eager does."""

    full_graph: tuple[FullGraph, ...] = ()
    """Of each arm but the baseline."""
    coverage: Coverage | None = None
    """What is captured and what isn't where; `None` where one graph is all of it, and where that
    could not be counted."""
    entry: CorpusEntry | None = None
    """Of a class that arguments had to be found for."""
