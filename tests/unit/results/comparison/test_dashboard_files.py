from __future__ import annotations

from typing import TYPE_CHECKING

import factories
import pytest

from dynamometer.results.comparison.compare import compare
from dynamometer.results.comparison.dashboard_files import read_files
from dynamometer.results.comparison.entries import of_arms
from dynamometer.results.comparison.sides import of_arm, of_cases, of_run
from dynamometer.results.exports.pytorch_csv import csv_text
from dynamometer.results.reports.arms.rows import closing_rows, rows
from dynamometer.results.reports.comparison.markdown import markdown
from dynamometer.results.reports.comparison.text import text
from dynamometer.results.statistics.summary import summarize_case
from dynamometer.results.store.bounds import name_in_file
from dynamometer.results.store.errors import StoreError
from dynamometer.results.values.cases import BASELINE
from dynamometer.results.values.comparison import Change
from dynamometer.results.values.records import SEPARATE_SD, Status

if TYPE_CHECKING:
    from pathlib import Path

PERFORMANCE = (
    "dev,name,batch_size,speedup,abs_latency,compilation_latency,compression_ratio,"
    "eager_peak_mem,dynamo_peak_mem,calls_captured,unique_graphs,graph_breaks"
)
NAME = "inductor_with_cudagraphs_torchbench_amp_training_cuda"


def performance(folder: Path, *rows: str, name: str = NAME) -> Path:
    """Write a file of theirs."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}_performance.csv"
    path.write_text("\n".join([PERFORMANCE, *rows]) + "\n")
    return path


def accuracy(folder: Path, *rows: str, name: str = NAME) -> None:
    """Write the file beside it."""
    folder.mkdir(exist_ok=True)
    text = "\n".join(["dev,name,batch_size,accuracy", *rows]) + "\n"
    (folder / f"{name}_accuracy.csv").write_text(text)


def test_a_file_of_theirs(tmp_path: Path) -> None:
    """Its name tells suite, dtype, mode and device; 0 stands for what is missing."""
    path = performance(
        tmp_path, "cuda,resnet18,16,1.5,10.0,30.0,0.9,2.0,1.8,40,1,0",
        "cuda,vgg16,64,0,0,0,0,0,0,0,0,0",
    )  # fmt: skip
    one, other = read_files(path).entries
    assert one.identity == {
        "suite": "torchbench", "dtype": "amp", "mode": "training", "device": "cuda",
        "shapes": "static", "model": "resnet18", "batch_size": "16",
    }  # fmt: skip
    assert one.arm == "inductor_with_cudagraphs"
    assert {name: round(each.value, 6) for name, each in one.quantities.items()} == {
        "speedup": 1.5, "compile_time": 30.0, "memory_ratio": 0.9, "eager_latency": 15.0,
        "latency": 10.0,
    }  # fmt: skip
    assert one.quantities["speedup"].between_sd == SEPARATE_SD
    assert (one.expectation.captured_ops, one.expectation.graph_breaks) == (40, 0)
    assert not other.passed
    assert other.quantities == {}


@pytest.mark.parametrize(
    ("name", "arm", "suite", "shapes"),
    [
        ("a_dynamic_timm_models_float32_inference_cpu", "a", "timm_models", "dynamic"),
        ("a_no_b_huggingface_amp_fp16_training_cuda", "a_no_b", "huggingface", "static"),
        ("a_b_torchbench_bfloat16_inference_cpu_x86_zen", "a_b", "torchbench", "static"),
        ("a_mine_float32_inference_cpu", "a", "mine", "static"),
    ],
)
def test_names_of_files(tmp_path: Path, name: str, arm: str, suite: str, shapes: str) -> None:
    """Whatever the arm is called."""
    (entry,) = read_files(performance(tmp_path, "cpu,m,1,1.5,1,1,1,1,1,1,1,1", name=name)).entries
    assert entry.arm == arm
    assert (entry.identity["suite"], entry.identity["shapes"]) == (suite, shapes)


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_run_beside_its_own_files(tmp_path: Path, *, dynamic: bool) -> None:
    """They are of the same cases, also where inputs are of several sizes."""
    case = factories.case(dynamic=dynamic)
    records = [factories.measured_record(case, replicate=each) for each in range(3)]
    for each in rows(summarize_case(records), compatible=True):
        (tmp_path / each.file).write_text(csv_text(each.columns, each.rows))
    run = of_cases("run", factories.manifest(factories.plan(cases=(case,))), [records], of_arms)
    found = compare(run, read_files(tmp_path))
    (judged,) = (each for each in found.counts if each.metric == "speedup")
    assert (judged.judged, judged.worse, judged.better) == (1, 0, 0)


def test_tables_of_ours_are_no_such_files(tmp_path: Path) -> None:
    """Their other columns say what counts for nothing; so they are not taken for PyTorch's."""
    case = factories.case(arms=(BASELINE, "inductor", "ts"))
    records = [factories.measured_record(case, replicate=each) for each in range(3)]
    tables = [each for each in closing_rows([summarize_case(records)]) if each.rows]
    assert len(tables) > 2
    for number, each in enumerate(tables):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / each.file).write_text(csv_text(each.columns, each.rows))
        of_pairs = "base" in each.columns
        says = "compares arms with each other" if of_pairs else "other columns than PyTorch's"
        with pytest.raises(StoreError, match=says):
            read_files(folder)
        if of_pairs:
            performance(folder, "cpu,m,1,1.5,1,1,1,1,1,1,1,1")
            assert read_files(folder).left_out == (each.file,)


@pytest.mark.parametrize("value", ["1e308", "1e-308", "-1.5"])
def test_what_nobody_measures_is_missing(tmp_path: Path, value: str) -> None:
    """A ratio of two such numbers may be none; nothing has a speedup below 0."""
    path = performance(tmp_path, f"cpu,m,1,{value},{value},1,1,1,1,1,1,1")
    (entry,) = read_files(path).entries
    assert not {"speedup", "latency", "eager_latency"} & entry.quantities.keys()


def test_a_file_that_a_spreadsheet_has_written(tmp_path: Path) -> None:
    """With a mark at its beginning that says it is UTF-8."""
    path = performance(tmp_path, "cuda,m,1,1.5,1,1,1,1,1,1,1,1", name="any")
    path.write_text(path.read_text(), encoding="utf-8-sig")
    (entry,) = read_files(path).entries
    assert entry.identity["device"] == "cuda"


def test_each_arm_of_files_has_an_eager_of_its_own(tmp_path: Path) -> None:
    """They were measured one after the other: what eager did in one says nothing of another."""

    def write(folder: Path, arm: str, eagers: list[float], compiled_ms: float) -> None:
        rows = [
            f"cpu,m{model},1,{eager / compiled_ms},{compiled_ms},1,1,1,1,1,1,1"
            for model, eager in enumerate(eagers)
        ]
        performance(folder, *rows, name=f"{arm}_torchbench_float32_inference_cpu")

    usual, faster = [10.0] * 30, [7.5, *[10.0] * 29]
    for folder, of_inductor in (("a", usual), ("b", faster)):
        write(tmp_path / folder, "aot_eager", usual, 10.0)
        write(tmp_path / folder, "inductor", of_inductor, 5.0)
    found = compare(read_files(tmp_path / "a"), read_files(tmp_path / "b"))
    assert not found.of(Change.SLOWER)
    (eager,) = found.of(Change.EAGER_FASTER)
    assert eager.model == "m0"


def test_a_file_of_any_name(tmp_path: Path) -> None:
    """Is compared by what its rows tell."""
    sides = []
    for name, speedup in (("monday", "1.5"), ("tuesday", "1.1")):
        path = tmp_path / f"{name}.csv"
        path.write_text(f"name,speedup\nresnet18,{speedup}\nvgg16,1.3\n")
        sides.append(read_files(path))
    found = compare(*sides)
    (finding,) = found.of(Change.SLOWER)
    assert finding.model == "resnet18"
    assert [each.name for each in found.tables[0].columns] == ["all"]


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ("pass", Status.PASS),
        ("pass_due_to_skip", Status.SKIP),
        ("fail_accuracy", Status.FAIL_ACCURACY),
        ("eager_two_runs_differ", Status.NONDETERMINISTIC),
        ("eager_1st_run_OOM", Status.OOM),
        ("timeout", Status.TIMEOUT),
        ("infra_error", Status.INFRA),
        ("fail_to_run", Status.FAIL),
        ("something_new", Status.FAIL),
    ],
)
def test_what_their_accuracy_says(tmp_path: Path, said: str, status: Status) -> None:
    """In our words; the two files of an arm in one directory are one."""
    performance(tmp_path, "cuda,m,16,1.5,10.0,30.0,0.9,2.0,1.8,40,1,0")
    accuracy(tmp_path, f"cuda,m,16,{said}")
    (entry,) = read_files(tmp_path).entries
    assert entry.outcome.status is status
    assert bool(entry.quantities) == (status is Status.PASS)


@pytest.mark.parametrize(("said", "passed"), [("pass", 1), ("fail_accuracy", 0)])
def test_a_model_that_was_checked_with_a_smaller_batch(
    tmp_path: Path, said: str, passed: int
) -> None:
    """It is one model, which counts once, with the batch size that it was timed with."""
    performance(tmp_path, "cuda,m,64,1.5,10.0,30.0,0.9,2.0,1.8,40,1,0")
    accuracy(tmp_path, f"cuda,m,4,{said}")
    side = read_files(tmp_path)
    (entry,) = side.entries
    assert (entry.identity["batch_size"], entry.passed) == ("64", bool(passed))
    (share, _) = compare(side, side).tables[0].columns[0].passrate
    assert (share.passed, share.counted) == (passed, 1)


def test_a_batch_size_that_the_model_sets_itself(tmp_path: Path) -> None:
    """There is 0 in its place, as in whatever is missing: it is called as in a run."""
    row = "1.5,10.0,30.0,0.9,2.0,1.8,40,1,0"
    before, other, after = (
        read_files(performance(tmp_path / name, f"cuda,m,{size},{row}"))
        for name, size in (("a", 0), ("b", 0), ("c", 8))
    )
    (entry,) = before.entries
    assert entry.identity["batch_size"] == "own"
    assert not compare(before, other).of(Change.NOT_COMPARED)
    (finding,) = compare(before, after).of(Change.NOT_COMPARED)
    assert finding.text == "batch size was own, is 8"


def test_a_model_of_several_batch_sizes_is_several(tmp_path: Path) -> None:
    """Where a file has it more than once, nobody knows which belong together."""
    row = "1.5,10.0,30.0,0.9,2.0,1.8,40,1,0"
    performance(tmp_path, f"cuda,m,64,{row}", f"cuda,m,32,{row}")
    accuracy(tmp_path, "cuda,m,4,pass")
    assert len(read_files(tmp_path).entries) == 3


def test_two_weeks(tmp_path: Path) -> None:
    """The table as they post it, and only what is far beyond how such numbers scatter."""
    rows = [f"cuda,m{each},16,1.5,10.0,30.0,0.9,2.0,1.8,40,1,0" for each in range(8)]
    performance(tmp_path / "a", *rows)
    accuracy(tmp_path / "a", *(f"cuda,m{each},16,pass" for each in range(8)))
    worse = rows[0].replace("1.5,10.0", "1.2,12.5"), rows[1].replace("1.5,10.0", "1.43,10.5")
    performance(tmp_path / "b", *worse, *rows[2:7], "cuda,m7,16,0,0,0,0,0,0,0,0,0")
    accuracy(
        tmp_path / "b",
        *(f"cuda,m{each},16,pass" for each in range(7)),
        "cuda,m7,16,fail_to_run",
    )
    found = compare(read_files(tmp_path / "a"), read_files(tmp_path / "b"))
    assert [(each.change, each.model) for each in found.findings[:2]] == [
        (Change.NEWLY_FAILING, "m7"),
        (Change.SLOWER, "m0"),
    ]
    assert "m1" in {each.model for each in found.of(Change.UNCLEAR)}
    assert sum("says nothing of scale, settings, versions" in each for each in found.notes) == 2
    (column,) = found.tables[0].columns
    assert [(each.passed, each.counted) for each in column.passrate] == [(8, 8), (7, 8)]
    assert column.speedup.before == pytest.approx(1.5)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a,b\n1,2\n", "no CSV file of PyTorch's harness"),
        (b"\xff\xfe", "can't be"),
        ("dev,name,speedup\ncpu,a,1.5\ncpu,,1.5\n", "row without a name"),
    ],
)
def test_what_is_no_such_file(tmp_path: Path, text: str | bytes, says: str) -> None:
    """Says what it lacks."""
    path = tmp_path / "x.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(StoreError, match=says):
        read_files(path)
    with pytest.raises(StoreError, match="holds neither manifest"):
        read_files(tmp_path.joinpath("empty").mkdir() or tmp_path / "empty")  # type: ignore[func-returns-value]  # makes it first


def test_other_files_beside_them_are_left_out(tmp_path: Path) -> None:
    """PyTorch's harness puts one of compilation metrics there; the comparison says so."""
    performance(tmp_path, "cuda,m,16,1.5,10.0,30.0,0.9,2.0,1.8,40,1,0")
    other = tmp_path / f"{NAME}_performance_compilation_metrics.csv"
    other.write_text("dev,name,batch_size,entire_frame_compile\ncuda,m,16,3.5\n")
    found = read_files(tmp_path)
    assert len(found.entries) == 1
    assert any(other.name in each for each in compare(found, found).notes)
    with pytest.raises(StoreError, match=r"compilation_metrics\.csv is no CSV file of PyTorch's"):
        read_files(other)


def test_a_model_that_passed_and_was_not_timed(tmp_path: Path) -> None:
    """Theirs has 0 where it failed then, or no row; ours of a disturbed case no speedup alone."""
    performance(
        tmp_path, "cuda,m,16,0,0,0,0,0,0,0,0,0", "cuda,n,16,1.5,1,1,1,1,1,1,1,0",
        "cuda,p,16,0,0,12.5,1,1,1,1,1,0",
    )  # fmt: skip
    accuracy(tmp_path, *(f"cuda,{each},16,pass" for each in "mnop"))
    found = {each.identity["model"]: each for each in read_files(tmp_path).entries}
    assert [found[each].passed for each in "mnop"] == [False, True, False, True]
    assert {found[each].outcome.reason for each in "mo"} == {"it has no speedup"}


def test_a_model_that_crashed_while_it_was_timed(tmp_path: Path) -> None:
    """It is newly failing; where no model of its kind was timed nothing is known of that."""
    row = "16,1.5,10.0,30.0,0.9,2.0,1.8,40,1,0"
    for folder, models in (("a", "mn"), ("b", "m")):
        performance(tmp_path / folder, *(f"cuda,{each},{row}" for each in models))
        accuracy(tmp_path / folder, *(f"cuda,{each},4,pass" for each in "mn"))
        checked = NAME.replace("training", "inference")
        accuracy(tmp_path / folder, *(f"cuda,{each},4,pass" for each in "mn"), name=checked)
    found = compare(read_files(tmp_path / "a"), read_files(tmp_path / "b"))
    (finding,) = found.of(Change.NEWLY_FAILING)
    assert (finding.model, finding.mode) == ("n", "training")
    rates = {each.title: each.columns[0].passrate[1].passed for each in found.tables}
    assert rates == {
        "training, inductor_with_cudagraphs": 1,
        "inference, inductor_with_cudagraphs": 2,
    }


def test_what_files_do_not_say_is_named(tmp_path: Path) -> None:
    """Beside a run, too: nobody says that there is no difference, nor which -r would settle it."""
    record = factories.measured_record(factories.case("m", ("baseline", "compiled")))
    run = of_run("run", factories.manifest(), [record], of_arms([record]))
    (path := tmp_path / "some.csv").write_text("name,speedup\nm,1.25\n")
    found = compare(run, read_files(path))
    assert found.notes[1].startswith(
        f"{path} (after) is CSV: it says nothing of mode, device, dtype, shapes, scale, settings,"
        " versions, threads or hardware"
    )
    for told in (text(found), markdown(found)):
        assert "CSV files don't say what differs" in told
        assert "ifference is known" not in told
    (finding,) = found.of(Change.UNCLEAR)
    assert finding.text.endswith("; CSV files hold one number each: compare run directories")


@pytest.mark.parametrize(
    "arms", [("bad:raises", "inductor:max-autotune", "ts"), ("mine:compile", "mine.compile")]
)
def test_arms_whose_names_no_file_can_hold(tmp_path: Path, arms: tuple[str, ...]) -> None:
    """They are those of the run beside the files, and a backend that fails in one is found."""
    record = factories.measured_record(factories.case("m", (BASELINE, *arms)))
    run = of_run("run", factories.manifest(), [record], of_arms([record]))
    failed = "cpu,m,4,0,0,0,0,0,0,0,0,0"
    for arm in arms:
        name = name_in_file(arm, arms) + "_torchbench_float32_inference_cpu"
        performance(tmp_path, failed if arm == arms[0] else f"cpu,m,4,1.25{',8' * 8}", name=name)
    files = read_files(tmp_path)
    for sides, change in (
        ((run, files), Change.NEWLY_FAILING), ((files, run), Change.NEWLY_PASSING),
    ):  # fmt: skip
        found = compare(*sides)
        assert [each.arm for each in found.of(change)] == [arms[0]]
        assert not found.of(Change.GONE) + found.of(Change.NEW)
        assert {each.title for each in found.tables} == {f"inference, {each}" for each in arms}


def test_an_arm_of_files_is_asked_for_by_its_name(tmp_path: Path) -> None:
    """By that which a run has, and by that of the file."""
    name = "bad-raises_torchbench_float32_inference_cpu"
    performance(tmp_path, "cpu,m,4,0,0,0,0,0,0,0,0,0", name=name)
    for arm in ("bad:raises", "bad-raises"):
        assert len(of_arm(read_files(tmp_path), arm).entries) == 1


def test_files_that_say_different_things_of_a_model(tmp_path: Path) -> None:
    """Which of them is meant can't be known from names such as these."""
    for name, speedup in (("inference", "1.5"), ("training", "1.1")):
        (tmp_path / f"{name}.csv").write_text(f"name,speedup\nresnet18,{speedup}\n")
    with pytest.raises(StoreError, match=r"training.csv says speedup 1.1 of resnet18, and another"):
        read_files(tmp_path)


@pytest.mark.parametrize(
    ("column", "one", "other"), [("speedup", "2.0", "0.5"), ("accuracy", "fail_to_run", "pass")]
)
def test_a_file_that_says_two_things_of_a_model(
    tmp_path: Path, column: str, one: str, other: str
) -> None:
    """The last row was taken, and gates passed."""
    path = tmp_path / "twice.csv"
    path.write_text(f"name,batch_size,{column}\nm,4,{one}\nm,4,{other}\n")
    with pytest.raises(StoreError, match=f"says {column} {other} of m, and another row {one}"):
        read_files(path)
    path.write_text(f"name,batch_size,{column}\nm,4,{one}\nm,4,{one}\n")
    assert len(read_files(path).entries) == 1


def test_what_is_not_finite_is_missing(tmp_path: Path) -> None:
    """No speedup is infinite, and a number that isn't one is none."""
    performance(
        tmp_path,
        "cpu,a,1,inf,1.0,2.0,nan,0,0,nan,1,inf",
        "cpu,b,1,nan,1.0,2.0,1.0,0,0,3,1,0",
        "cpu,c,1,1.5,inf,nan,inf,0,0,3,1,0",
    )
    a, b, c = read_files(tmp_path).entries
    assert [each.passed for each in (a, b, c)] == [False, False, True]
    assert (a.expectation.captured_ops, a.expectation.graph_breaks) == (None, None)
    assert list(c.quantities) == ["speedup"]
