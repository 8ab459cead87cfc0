"""What users and dashboards read, compared byte for byte (`pytest --update-golden`)."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

import factories
import msgspec
import pytest
from columns_page import page
from their_options_page import page as dynamobench_page

from dynamometer.common import registry
from dynamometer.common.command_line import cli
from dynamometer.common.command_line.dynamobench.translation import their_options
from dynamometer.common.studies.speedup.study import STUDY
from dynamometer.results.reports.arms.columns import PERFORMANCE
from dynamometer.results.reports.columns import Rows
from dynamometer.results.reports.console import Console
from dynamometer.results.reports.csv_sink import CsvFiles
from dynamometer.results.values.cases import BASELINE, NO_BACKEND
from dynamometer.results.values.records import PASSED, Absence, ArmResult, CaptureStats, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from dynamometer.results.values.records import Record

ARMS = (BASELINE, "inductor", "ts")


def passing(model: str, inductor_s: float, ts_s: float, replicates: int) -> list[Record]:
    """Make replicates of a case in which every arm passed, each a little faster than the last."""
    case = factories.case(model, ARMS)
    return [
        factories.measured_record(
            case,
            replicate=each,
            seconds={BASELINE: 0.010, "inductor": inductor_s * (1 - each / 500), "ts": ts_s},
            peaks_mib={"inductor": 250.0, "ts": 50.0},
        )
        for each in range(replicates)
    ]


def without_memory_and_unsteady(model: str) -> list[Record]:
    """Make a case whose memory couldn't be measured, and whose arms never settled."""
    (record,) = passing(model, 0.011, 0.0101, 1)
    kept = tuple(each for each in record.measurements if not each.metric.endswith("memory"))
    arms = tuple(msgspec.structs.replace(each, steady=False) for each in record.arms)
    absent = tuple(Absence(metric="calls_memory", arm=arm, reason="no cgroup") for arm in ARMS)
    return [msgspec.structs.replace(record, measurements=kept, arms=arms, absent=absent)]


def one_arm_failing(model: str) -> list[Record]:
    """Make a case in which one arm is wrong and the other passed."""
    (record,) = passing(model, 0.005, 0.009, 1)
    wrong = factories.failure(
        Status.FAIL_ACCURACY,
        factories.Stage.COMPARE,
        'output.logits: error 0.0312 exceeds the tolerance 0.0001, said "no, not" at all',
    )
    capture = CaptureStats(frames=3, frames_ok=1, graphs=0, ops=0, breaks={"generator": 2})
    arms = (
        ArmResult(arm=BASELINE, outcome=PASSED, steady=True),
        ArmResult(arm="inductor", outcome=wrong, capture=capture),
        ArmResult(arm="ts", outcome=PASSED, steady=True),
    )
    kept = tuple(each for each in record.measurements if each.arm != "inductor")
    return [msgspec.structs.replace(record, outcome=wrong, arms=arms, measurements=kept)]


def ended(model: str, status: Status, reason: str) -> list[Record]:
    """Make a case that ended before any arm was built; its batch size is the model's own."""
    outcome = factories.failure(status, factories.Stage.LOAD, reason)
    return [factories.record(factories.case(model, ARMS, batch_size=None), outcome=outcome)]


def overhead() -> list[list[Record]]:
    """Make a run of Dynamo without a backend, which costs 2 % on one model and 25 % on another."""
    runs = []
    for model, seconds in (("resnet18", 0.0102), ("lennard_jones", 0.0125)):
        case = factories.case(model, (BASELINE, NO_BACKEND))
        records = [
            factories.measured_record(
                case, replicate=each, seconds={BASELINE: 0.010, NO_BACKEND: seconds}
            )
            for each in range(3)
        ]
        capture = CaptureStats(frames=1, frames_ok=1, graphs=1, ops=40, guards=60, guards_s=0.0005)
        runs.append(
            [
                msgspec.structs.replace(
                    record,
                    arms=tuple(
                        msgspec.structs.replace(
                            arm, capture=capture if arm.arm == NO_BACKEND else None
                        )
                        for arm in record.arms
                    ),
                )
                for record in records
            ]
        )
    return runs


def screening() -> list[list[Record]]:
    """Make a run of one replicate in which everything happens."""
    return [
        passing("resnet18", 0.008, 0.00995, 1),
        without_memory_and_unsteady("dcgan"),
        one_arm_failing("hf_Bert"),
        ended("vision_maskrcnn", Status.SKIP, "torchvision's compiled operators are missing"),
        ended("a_model_with_quite_a_long_name_indeed", Status.OOM, "MemoryError: " + "x" * 120),
    ]


def replicated() -> list[list[Record]]:
    """Make a run of three replicates in which all is well."""
    return [passing("resnet18", 0.008, 0.0102, 3), passing("vgg16", 0.010, 0.004, 3)]


@pytest.mark.parametrize("run", [overhead, screening, replicated], ids=lambda run: run.__name__)
def test_console(golden: Callable[[str, str], None], run: Callable[[], list[list[Record]]]) -> None:
    """The line of each case, and what all come to."""
    stream = io.StringIO()
    console = Console(STUDY, factories.destination(stream=stream))
    for records in run():
        console.write(records)
    stream.write("----\n")
    console.close()
    golden(f"console_{run.__name__}.txt", stream.getvalue())


def test_console_with_a_single_arm(golden: Callable[[str, str], None]) -> None:
    """With one backend its name is left out of the lines."""
    stream = io.StringIO()
    console = Console(STUDY, factories.destination(stream=stream))
    console.write([factories.measured_record(replicate=each) for each in range(3)])
    console.close()
    golden("console_single_arm.txt", stream.getvalue())


@pytest.mark.parametrize("compatible", [False, True], ids=["ours", "compatible"])
def test_csv(golden: Callable[[str, str], None], tmp_path: Path, *, compatible: bool) -> None:
    """One file for each arm, with ours one of pairs; with the dashboards' columns alone two."""
    sink = CsvFiles(STUDY, factories.destination(tmp_path, is_compatible=compatible))
    for records in screening():
        sink.write(records)
    sink.close()
    kinds = (
        ["inductor_{}_performance", "inductor_{}_accuracy", "ts_{}_performance", "ts_{}_accuracy"]
        if compatible
        else ["inductor_{}_performance", "ts_{}_performance", "backends_{}_pairs"]
    )
    suite = "torchbench_float32_inference_cpu"
    assert [path.name for path in sink.paths] == [f"{each.format(suite)}.csv" for each in kinds]
    for path in sink.paths:
        form = "compatible" if compatible else "ours"
        golden(f"csv_{form}/{path.name}", path.read_bytes().decode())


def test_dashboards_columns_are_theirs() -> None:
    """Names and order are those of PyTorch's `benchmarks/dynamo`, and ours come after."""
    assert ",".join(each.name for each in PERFORMANCE.theirs().columns) == (
        "dev,name,batch_size,speedup,abs_latency,compilation_latency,compression_ratio,"
        "eager_peak_mem,dynamo_peak_mem,calls_captured,unique_graphs,"
        "fallbacks_to_eager,graph_breaks,unique_graph_breaks,autograd_captures,autograd_compiles,"
        "cudagraph_skips"
    )


def test_the_page_of_columns(golden: Callable[[str, str], None]) -> None:
    """`docs/columns.md` lists what is written, and nothing else."""
    built_in = [
        name for name in registry.targets("studies") if registry.is_built_in("studies", name)
    ]
    text = page((name, registry.study(name).tables()) for name in built_in)
    golden("../../../docs/columns.md", text)


def test_the_page_of_their_options(golden: Callable[[str, str], None]) -> None:
    """`docs/coming-from-dynamobench.md` says what each option of PyTorch's harness comes to."""
    text = dynamobench_page(their_options())
    golden("../../../docs/coming-from-dynamobench.md", text)


def test_a_row_with_a_value_too_many_is_refused() -> None:
    """No value vanishes for want of a column."""
    with pytest.raises(ValueError, match="1 values for 2 columns"):
        Rows("some.csv", ("one", "two"), ((1,),))


_COMMANDS = re.compile(r"^  ([a-z]+)  ", re.MULTILINE)
"""Names of commands, as the end of a group's help lists them."""

_OPTIONS_HEAD = """# Commands and options

What `--help` says of each command; that of a suite's script, such as `./torchbench.py`, is that of
`dynamometer run`, without its TARGET.
"""


def test_the_page_of_options(
    golden: Callable[[str, str], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`docs/options.md` holds what every command says of itself, 80 columns wide."""
    monkeypatch.setenv("COLUMNS", "80")

    def sections(*command: str) -> Iterator[str]:
        assert cli.main(None, [*command, "--help"]) == 0
        text = capsys.readouterr().out
        yield f"## {' '.join(('dynamometer', *command))}\n\n```text\n{text}```\n"
        for name in _COMMANDS.findall(text.partition("Commands:")[2]):
            yield from sections(*command, name)

    golden("../../../docs/options.md", "\n".join([_OPTIONS_HEAD, *sections()]))


def test_help_of_a_script(
    golden: Callable[[str, str], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Its options are those of its suite."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.argv", ["./torchbench.py"])
    assert cli.main("torchbench", ["--help"]) == 0
    golden("help_script.txt", capsys.readouterr().out)
