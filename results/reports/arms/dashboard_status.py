"""Our statuses in the words of PyTorch's dashboards, which read them from the `accuracy` column.

The whole table is in docs/statuses.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamometer.results.values.records import Stage, Status

if TYPE_CHECKING:
    from dynamometer.results.values.records import Outcome

_BY_STATUS = {
    Status.PASS: "pass",
    Status.SKIP: "pass_due_to_skip",
    Status.FAIL_ACCURACY: "fail_accuracy",
    Status.NONDETERMINISTIC: "eager_two_runs_differ",
    Status.FAIL: "fail_to_run",
    Status.OOM: "OOM",
    Status.TIMEOUT: "timeout",
    Status.CRASH: "fail_to_run",
    Status.INFRA: "infra_error",
}


def accuracy_string(outcome: Outcome) -> str:
    """Return what `benchmarks/dynamo` writes for an outcome."""
    broken = outcome.status in {Status.FAIL, Status.CRASH, Status.OOM}
    if broken and outcome.stage is Stage.LOAD:
        return "model_fail_to_load"
    if broken and outcome.stage is Stage.EAGER:
        kind = "OOM" if outcome.status is Status.OOM else "fail"
        return f"eager_1st_run_{kind}"
    return _BY_STATUS[outcome.status]
