"""What words on the command line come to, up to the run itself."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import factories
import msgspec
import pytest

import dynamometer
from dynamometer.common.command_line import begin, cli
from dynamometer.common.errors import UnfitEnvironmentError
from dynamometer.common.interfaces.run_options import CSV_COMPAT
from dynamometer.common.machine.environment import read_environment
from dynamometer.results.store import store
from dynamometer.results.store.errors import StoreError
from dynamometer.results.values.cases import (
    Dtype,
    DynamicDims,
    MatmulPrecision,
    Mode,
    Overrides,
    Protocol,
    Scale,
)
from dynamometer.results.values.workers import Allocator, Caches, StartMethod

if TYPE_CHECKING:
    from dynamometer.common.interfaces.option import Request
    from dynamometer.results.values.records import Manifest


class Program:
    """Gives words to the program and keeps what it would have executed."""

    def __init__(self) -> None:
        """Execute nothing yet."""
        self.executed: list[tuple[Manifest, Path, Request]] = []

    def execute(
        self, manifest: Manifest, directory: Path, asked: Request, *_: object, **__: object
    ) -> int:
        """Stand in for the run."""
        self.executed.append((manifest, directory, asked))
        return 0

    def script(self, *words: str) -> Manifest:
        """Run `./torchbench.py` and give the one manifest it made."""
        assert cli.main("torchbench", words) == 0
        return self.executed.pop()[0]


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """The program in an empty directory, called as `./torchbench.py`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TORCHBENCH_ROOT", raising=False)
    monkeypatch.setattr("sys.argv", ["./torchbench.py"])
    made = Program()
    monkeypatch.setattr(begin, "execute", made.execute)
    return made


def test_a_bare_command_line_is_quick(program: Program, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a word the quick selection is run once each, and that is said."""
    manifest = program.script()
    assert "taking --quick" in capsys.readouterr().err
    assert manifest.plan.protocol.replicates == 1
    assert all(spec.quick for spec in manifest.plan.models)


def test_defaults(program: Program) -> None:
    """What isn't said is as documented: inductor, three replicates, full scale, on the CPU."""
    plan = program.script("--only", "resnet18").plan
    (case,) = plan.cases
    assert case.arms == ("baseline", "inductor")
    assert (case.device, case.scale) == ("cpu", Scale.FULL)
    assert plan.protocol == Protocol()
    assert (plan.timeout_s, plan.seed, plan.threads) == (1200.0, 0, None)
    assert plan.memory_limit_bytes is not None
    assert plan.experiments == ("speedup", "isolated", "memory")
    assert not plan.no_skip


def test_every_option_reaches_the_plan(program: Program) -> None:
    """Nothing that is asked for is dropped."""
    words = (
        "--only resnet18 --backend eager --speedup-ts --scale tiny --batch-size 3 -r 5 -n 9"
        " --allocator stock --seed 4 -t 2 --timeout 60 --memory-limit 2G --spawn --no-skip"
    )
    plan = program.script(*words.split()).plan
    (case,) = plan.cases
    assert case.arms == ("baseline", "eager", "ts")
    assert (case.scale, case.batch_size) == (Scale.TINY, 3)
    assert plan.protocol == Protocol(
        replicates=5,
        calls=9,
        allocator=Allocator.STOCK,
        start_method=StartMethod.SPAWN,
    )
    assert (plan.timeout_s, plan.seed, plan.threads) == (60.0, 4, 2)
    assert plan.no_skip
    assert plan.memory_limit_bytes == 2 * 2**30


def test_every_mode_reaches_the_plan(program: Program) -> None:
    """What is run, and how exactly, is part of each case; correctness alone is one experiment."""
    words = (
        "--only resnet18 --training --bfloat16 --channels-last --accuracy --scale tiny "
        "--matmul-precision high"
    )
    plan = program.script(*words.split()).plan
    (case,) = plan.cases
    assert case.matmul_precision is MatmulPrecision.HIGH
    assert (case.mode, case.dtype, case.channels_last) == (Mode.TRAINING, Dtype.BFLOAT16, True)
    assert case.batch_size is not None
    assert case.batch_size >= 2
    assert plan.experiments == ("accuracy",)
    assert plan.protocol.replicates == 1


@pytest.mark.parametrize(
    ("suite", "words", "says"),
    [
        ("torchbench", "--speedup-ts --training", "freezes the model"),
        ("torchbench", "--speedup-ts --amp", "can't hold autocast"),
        ("torchbench", "--compile-optimizer", "goes with --training"),
        (
            "torchbench",
            "--compile-optimizer --training --backend ensemble",
            "ensemble uses decisions on graphs of models",
        ),
        ("torchbench", "--update-expected", "name it with --expect FILE"),
        ("torchbench", "--expect none.csv", "--update-expected makes it"),
        ("torchbench", "--find-batch-sizes --backend eager", "leave out --backend"),
        ("torchbench", "--find-batch-sizes --batch-size 4", "leave out --batch-size"),
        ("torchbench", "--find-batch-sizes --dynamic-shapes", "leave out --dynamic-shapes"),
        ("torchbench", "--find-batch-sizes --accuracy", "leave out --accuracy"),
        ("torchbench", "--find-batch-sizes -r 2", "leave out --replicates"),
        ("torchbench", "--find-batch-sizes -n 2", "leave out --repeat"),
        ("torchbench", "--find-batch-sizes --speedup-ts", "leave out --speedup-ts"),
        ("torchbench", "--find-batch-sizes --compile-optimizer --training", "leave out --compile"),
        ("torchbench", "--expect mine.py", "its columns must be"),
        ("torchbench", "--only resnet18 --sink zzz", "unknown sink 'zzz'; known: console, csv"),
        ("torchbench", "--float16 --bfloat16", "--float16 and --bfloat16 contradict each other"),
        ("torchbench", "--training --inference", "--training and --inference contradict"),
        ("torchbench", "--accuracy --performance", "contradict each other: give one"),
        ("torchbench", "--cold --warm-start-latency", "--cold and --warm contradict"),
        ("torchbench", "--backend eager --backend ts --output x.csv", "results of one backend"),
        ("torchbench", "--sweep-sizes --output x.csv", "say nothing of --sweep-sizes"),
        ("torchbench", "--quick --output /dev/null/x.csv", "x.csv can't be written"),
        ("torchbench", "--quick -d cuda:1", "CUDA_VISIBLE_DEVICES chooses"),
        ("torchbench", "--freezing --training", "freezing is for inference"),
        ("torchbench", "--freezing --backend aot_eager", "aot_eager has no options"),
        ("torchbench", "--inductor-compile-mode max-autotun", "did you mean max-autotune"),
        ("torchbench", "--quick --batch-size-file none.txt", "none.txt can't be read"),
        ("torchbench", "--list --batch-size-file none.txt", "none.txt can't be read"),
        ("torchbench", "--batch-size-file x --batch-size 4", "leave out --batch-size"),
        ("torchbench", "--only resnet18 --executor zzz", "unknown executor 'zzz'; known: local"),
        ("torchbench", "--coverage --target 0.1", "leave out --target"),
        ("parity", ". -r 5", "leave out --replicates"),
        ("parity", ". -n 50", "leave out --repeat"),
        ("parity", ". --max-seconds 9", "leave out --max-seconds"),
        ("parity", ". --cold", "leave out --cold and --warm"),
        ("parity", ". --speedup-onnx", "leave out --speedup-onnx"),
        ("torchbench", "--only path:a.py,class:B", "type dynamometer run FILE.py::NAME"),
        (
            "torchbench",
            "--only resnet18 --memory-limit 0",
            "is not from 1 byte to less than 8388608T",
        ),
        (
            "torchbench",
            "--only resnet18 --memory-limit 8388608T",
            "is not from 1 byte to less than 8388608T",
        ),
        ("torchbench", "--only resnet18 --output pipe", "pipe is no file"),
        ("torchbench", "--only resnet18 --output-dir \udcff", "b'\\xff' is not UTF-8"),
        # As Python reads it where the locale is C.
        (
            "torchbench",
            "--only resnet18 --output-dir a-\udcc3\udcbc",
            "the locale has no 'a-\\xfc': set LC_ALL=C.UTF-8",
        ),
        (None, "resume nowhere", "nowhere is not a run directory"),
        (None, "ls suites torchbench", "without 'torchbench'"),
        (None, "run torchbench-checkout", "needs --torchbench-root DIR"),
        (None, "run torchbench-checkout --torchbench-root x", "x is no checkout"),
        (None, "run mine.py --batch-size 4", "a takes no batch_size=NUMBER"),
        (None, "run mine.py --dynamic-shapes", "no size of a can be varied"),
        (None, "run mine.py --find-batch-sizes", "no size of a can be varied"),
        (None, "run user", "dynamometer run FILE.py"),
        (None, "run", "say what to run"),
        (None, "run .", "'.' is neither a suite nor a path of what can be run"),
        (None, "run ./nowhere", "'./nowhere' is neither a suite nor a path"),
        (None, "run pipe", "'pipe' is neither a suite nor a path"),
        (None, "run torchbnech", "did you mean torchbench"),
        (None, "run nowhere/else", "'nowhere/else' is neither a suite nor a path"),
        ("parity", "nowhere", "there is no folder or file"),
        (None, "run nowhere.py", "there is no file"),
        (None, "run mine.py --scale tiny", "leave out --scale"),
        (None, "run mine.py --torchbench-root .", "can't go with the suite user"),
        (None, "run torchbench --all", "--all goes with the suite timm_models"),
        (None, "run huggingface --torchbench-root .", "can't go with the suite huggingface"),
    ],
)
def test_what_cannot_be_is_refused(
    program: Program,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    suite: str | None,
    words: str,
    says: str,
) -> None:
    """A combination that no arm could run is refused before anything runs, with the reason."""
    (tmp_path / "mine.py").write_text("def a(): ...\n")
    os.mkfifo(tmp_path / "pipe")
    assert cli.main(suite, words.split()) == 2
    assert says in capsys.readouterr().err
    assert program.executed == []


def test_of_what_is_no_suite_nothing_is_said_before(
    program: Program, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nor what would be taken of it."""
    assert cli.main(None, ["run", "."]) == 2
    assert capsys.readouterr().err.startswith("error: '.' is neither")


@pytest.mark.parametrize(
    ("words", "study"),
    [
        ("", "parity"),
        ("--performance -r 2 -n 9", "speedup"),
        ("--overhead", "speedup"),
        ("--accuracy", "accuracy"),
    ],
)
def test_what_modules_of_a_corpus_are_asked(
    program: Program, tmp_path: Path, words: str, study: str
) -> None:
    """What is typed, and `--performance` is what other suites' models are asked anyway."""
    (tmp_path / "test_net.py").write_text(
        "class A: ...\n\nTESTCASES = [\n    (A, lambda: ([], {}), lambda: ([], {})),\n]\n"
    )
    assert cli.main("parity", [str(tmp_path), *words.split()]) == 0
    assert program.executed.pop()[0].plan.study == study


@pytest.mark.parametrize(
    "words", ["parity DIR", "--backend eager parity DIR -k A", "parity -- DIR"]
)
def test_a_suite_that_takes_a_folder_is_run_as_its_script(
    program: Program, tmp_path: Path, words: str
) -> None:
    """From a command that can be repeated."""
    (tmp_path / "test_net.py").write_text(
        "class A: ...\n\nTESTCASES = [\n    (A, lambda: ([], {}), lambda: ([], {})),\n]\n"
    )
    typed = [str(tmp_path) if word == "DIR" else word for word in words.split()]
    for _ in range(2):
        assert cli.main(None, ["run", *typed]) == 0
        manifest = program.executed.pop()[0]
        assert manifest.plan.study == manifest.plan.suite == "parity"
        assert manifest.program == f"dynamometer run parity {tmp_path}"
        typed = shlex.split(manifest.command)[2:]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("run parity", "dynamometer run parity DIR"),
        ("run parity --list", "dynamometer run parity DIR"),
        ("run parity nowhere", "there is no folder or file"),
        ("run torchbench nowhere", "several: torchbench nowhere"),
        ("run user mine.py", "several: user mine.py"),
    ],
)
def test_what_a_suite_lacks_is_said(
    program: Program, capsys: pytest.CaptureFixture[str], words: str, says: str
) -> None:
    """A folder, or that it takes none."""
    assert cli.main(None, words.split()) == 2
    said = capsys.readouterr().err
    assert says in said
    assert "--quick" not in said
    assert program.executed == []


@pytest.mark.parametrize(
    "words",
    ["run torchbench", "run ../mine.py", "explain torchbench/resnet18", "resume x", "compare a b"],
)
def test_nothing_is_done_where_the_folder_is_gone(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str], words: str,
) -> None:  # fmt: skip
    """That is said, rather than what comes of it."""
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert cli.main(None, words.split()) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: the current folder can't be used (No such file")
    assert program.executed == []


def test_commands_of_pytorchs_harness_always_say_how(program: Program) -> None:
    """None is without `--performance` or `--accuracy`, so `--coverage` goes with the first."""
    words = "--performance --inference --coverage --only resnet18"
    plan = program.script(*words.split()).plan
    assert plan.study == "coverage"


@pytest.mark.parametrize(
    ("words", "arms"),
    [
        ("--backend eager --backend inductor", ("eager", "inductor")),
        ("--backend eager --backend eager", ("eager",)),
        ("--speedup-ts", ("ts",)),
        ("--backend ts", ("ts",)),
        ("--backend ts --speedup-ts", ("ts",)),
        ("--backend json:dumps", ("json:dumps",)),
    ],
)
def test_arms(program: Program, words: str, arms: tuple[str, ...]) -> None:
    """Arms come in the order they were named, each once."""
    (case,) = program.script("--only", "resnet18", *words.split()).plan.cases
    assert case.arms == ("baseline", *arms)


def _project(folder: Path, options: str) -> None:
    """Write a project of one model, with options of its own."""
    (folder / "mine.py").write_text("def a(): ...\n")
    table = f'[tool.dynamometer]\nmodels = "mine.py"\n{options}'
    (folder / "pyproject.toml").write_text(table)


def test_a_project_says_what_is_run(program: Program, tmp_path: Path) -> None:
    """Its options come first, so that those typed win; the command recorded names them all."""
    _project(tmp_path, 'backend = ["eager"]\nreplicates = 5\n')
    assert cli.main(None, ["run", "-r", "2"]) == 0
    ((manifest, _, _),) = program.executed
    assert [case.model for case in manifest.plan.cases] == ["a"]
    assert manifest.plan.cases[0].arms == ("baseline", "eager")
    assert manifest.plan.protocol.replicates == 2
    path = tmp_path / "mine.py"
    words = f"dynamometer run {path} --backend eager --replicates 5 -r 2"
    assert manifest.command == words


def test_a_project_may_name_a_file_of_decisions(
    program: Program, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Runs that make none take no notice; what is typed beside it is refused."""
    _project(tmp_path, 'decisions = "zz.sqlite"\n')
    assert cli.main(None, ["run"]) == 0
    ((manifest, _, _),) = program.executed
    assert manifest.plan.tuning is None
    for words in (["--decisions", "yy"], ["--decisions=yy"]):
        assert cli.main(None, ["run", *words]) == 2
        assert "--decisions needs decisions" in capsys.readouterr().err


def test_a_choice_of_the_project_gives_way(
    program: Program, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of flags that contradict each other the one that was typed counts."""
    _project(tmp_path, "float16 = true\ntraining = true\ncold = true\n")
    assert cli.main(None, ["run", "--bfloat16", "--warm-start-latency", "--ci"]) == 0
    assert capsys.readouterr().err.count("--ci") == 1
    ((manifest, _, _),) = program.executed
    (case,) = manifest.plan.cases
    assert (case.dtype, case.mode) == (Dtype.BFLOAT16, Mode.TRAINING)
    assert manifest.plan.protocol.caches is Caches.WARM


def test_an_option_of_the_project_that_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is the file's, not the command line's."""
    monkeypatch.chdir(tmp_path)
    _project(tmp_path, "foo = 1\n")
    assert cli.main(None, ["run"]) == 2
    assert "pyproject.toml: 'foo' of [tool.dynamometer] is no option" in capsys.readouterr().err
    assert cli.main(None, ["run", "--bar"]) == 2
    assert "No such option: --bar" in capsys.readouterr().err.replace("'", "").replace(
        "option -", "option: -"
    )


def test_a_value_of_the_project_that_is_none(
    program: Program, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is the file's, unless another was typed."""
    _project(tmp_path, 'allocator = "tinny"\n')
    assert cli.main(None, ["run"]) == 2
    assert "pyproject.toml: Invalid value for '--allocator'" in capsys.readouterr().err
    assert cli.main(None, ["run", "--allocator", "tiny"]) == 2
    said = capsys.readouterr().err
    assert "pyproject.toml" not in said
    assert "Invalid value for '--allocator'" in said


def test_a_command_of_pytorchs_harness(
    program: Program, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is run as it is typed there; what needn't be asked for is said."""
    line = (
        "--ci --performance --disable-cudagraphs --inductor --inference --bfloat16 -dcpu -n50"
        " --only resnet18 --dynamic-shapes --dynamic-batch-only --timeout 9000 --output x.csv"
    )
    manifest = program.script(*line.split())
    (case,) = manifest.plan.cases
    assert case.arms == ("baseline", "inductor:no-cudagraphs")
    assert case.dynamic_dims is DynamicDims.BATCH
    assert (manifest.plan.timeout_s, manifest.plan.protocol.calls) == (9000, 50)
    assert shlex.split(manifest.command)[2:] == line.split()
    said = capsys.readouterr().err
    assert "note: --ci: " in said


def test_a_named_backend_that_can_not_be_used_here(
    program: Program, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is told before anything is measured; if no other is named, nothing is."""
    words = ["--only", "resnet18", "--backend", "cudagraphs"]
    (case,) = program.script(*words, "--backend", "eager").plan.cases
    assert case.arms == ("baseline", "cudagraphs", "eager")
    assert "skipped: cudagraphs runs on cuda only\n" in capsys.readouterr().err
    assert cli.main("torchbench", words) == 4
    assert cli.main("torchbench", [*words, "--backend", "tensorrt"]) == 4
    said = capsys.readouterr().err
    assert "error: cudagraphs runs on cuda only; tensorrt runs on cuda only\n" in said


def test_every_backend_that_can_be_used_here(
    program: Program, capsys: pytest.CaptureFixture[str]
) -> None:
    """`all` is those through Dynamo, then whole models; of others it is said why not."""
    (case,) = program.script("--only", "resnet18", "--backend", "all", "--training").plan.cases
    assert case.arms == ("baseline", "aot_eager", "eager", "inductor")
    said = capsys.readouterr().err
    assert "left out: ts computes no gradients" in said
    assert "left out: cudagraphs runs on cuda only" in said
    (case,) = program.script("--only", "resnet18", "--backend", "all", "--amp").plan.cases
    assert {"inductor", "export", "aot_inductor"} <= {*case.arms}
    assert case.arms.index("inductor") < case.arms.index("export")
    assert "ts" not in case.arms


def test_a_refused_run_leaves_no_file_behind(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor folders; what was there stays."""

    def refuse(_: str) -> None:
        raise UnfitEnvironmentError

    monkeypatch.setattr("dynamometer.common.machine.environment.require_device", refuse)
    (tmp_path / "old.csv").write_text("a\n")
    (tmp_path / "far.csv").symlink_to("nowhere/far.csv")
    (tmp_path / "itself.csv").symlink_to("itself.csv")
    (tmp_path / "link.csv").symlink_to("nowhere.csv")
    words = ("--only", "resnet18", "--output")
    for path in ("new.csv", "a/b/new.csv", "q/../new.csv", "old.csv", "link.csv", "far.csv"):
        assert cli.main("torchbench", [*words, path]) == 4
    for path in (f"{'n' * 300}.csv", f"a/{'n' * 300}/x.csv", "itself.csv"):
        assert cli.main("torchbench", [*words, path]) == 2
    left = sorted(each.name for each in tmp_path.iterdir())
    assert left == ["far.csv", "itself.csv", "link.csv", "old.csv"]
    assert (tmp_path / "old.csv").read_text() == "a\n"
    assert program.executed == []


def test_output_to_a_pipe_by_its_number_is_refused(
    program: Program, capsys: pytest.CaptureFixture[str]
) -> None:
    """As `/dev/stdout` is where that is one: what it leads to has no path."""
    reader, writer = os.pipe()
    assert cli.main("torchbench", ["--only", "resnet18", "--output", f"/dev/fd/{writer}"]) == 2
    assert f"/dev/fd/{writer} is no file" in capsys.readouterr().err
    assert program.executed == []
    os.close(reader)
    os.close(writer)


def test_batch_sizes_come_from_a_file(program: Program, tmp_path: Path) -> None:
    """Each model that is named gets its size, and the others keep theirs."""
    (tmp_path / "sizes.txt").write_text("resnet18,3\n")
    words = "--only resnet18 --only alexnet --batch-size-file sizes.txt"
    sizes = {case.model: case.batch_size for case in program.script(*words.split()).plan.cases}
    assert sizes["resnet18"] == 3
    assert sizes["alexnet"] != 3


def test_a_model_of_a_file_that_the_suite_has_not_is_named(
    program: Program, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The others are run as the file says."""
    (tmp_path / "sizes.txt").write_text("resnet18,3\nresnet81,4\n")
    manifest = program.script("--only", "resnet18", "--batch-size-file", "sizes.txt")
    assert [case.batch_size for case in manifest.plan.cases] == [3]
    assert "names models that the suite does not have: resnet81" in capsys.readouterr().err


def test_quick_may_have_more_replicates(program: Program) -> None:
    """`-r` wins over what `--quick` implies."""
    assert program.script("--quick", "-r", "4").plan.protocol.replicates == 4


def test_a_run_directory_is_made(program: Program, tmp_path: Path) -> None:
    """The manifest is on disk before anything runs, and names the whole command line."""
    words = ["--only", "resnet18", "--output-dir", "else where", "--csv-compat"]
    assert cli.main("torchbench", words) == 0
    ((manifest, directory, asked),) = program.executed
    assert directory == Path("else where") / manifest.run_id
    assert store.read_manifest(tmp_path / directory) == manifest
    script = str(Path("torchbench.py").resolve())
    assert shlex.split(manifest.command) == [sys.executable, script, *words]
    assert manifest.version == dynamometer.__version__
    assert asked[CSV_COMPAT]


def test_run_ids_differ(program: Program) -> None:
    """Two runs of one second have a directory each, and sort by time."""
    first, second = (program.script("--only", "resnet18").run_id for _ in range(2))
    assert first != second
    assert first[:8].isdigit()


def test_the_command_runs_a_suite_like_its_script(program: Program) -> None:
    """`dynamometer run torchbench` plans what `./torchbench.py` does, and says so."""
    words = ["--only", "resnet18", "--scale", "tiny"]
    by_script = program.script(*words)
    assert cli.main(None, ["run", "torchbench", *words]) == 0
    by_command = program.executed.pop()[0]
    assert by_command.plan == by_script.plan
    assert by_command.program == "dynamometer run torchbench"
    assert by_command.command == "dynamometer run torchbench --only resnet18 --scale tiny"


def test_a_bare_run_of_a_suite_is_quick(program: Program) -> None:
    """The name of the suite alone asks for nothing in particular."""
    assert cli.main(None, ["run", "torchbench"]) == 0
    assert all(spec.quick for spec in program.executed.pop()[0].plan.models)


@pytest.mark.parametrize(
    ("words", "others"),
    [
        ("--output-dir torchbench --quick torchbench", "--output-dir torchbench --quick"),
        ("--output-dir torchbench torchbench --quick", "--output-dir torchbench --quick"),
        ("torchbench --output-dir torchbench --quick", "--output-dir torchbench --quick"),
        ("-k torchbench|resnet18 torchbench", "-k torchbench|resnet18"),
        ("-x torchbench --only resnet18 torchbench", "-x torchbench --only resnet18"),
    ],
)
def test_the_command_names_the_suite_once(program: Program, words: str, others: str) -> None:
    """A value that is called as the suite is stays where it was."""
    assert cli.main(None, ["run", *words.split()]) == 0
    manifest = program.executed.pop()[0]
    assert shlex.split(manifest.command) == ["dynamometer", "run", "torchbench", *others.split()]
    assert cli.main(None, shlex.split(manifest.command)[1:]) == 0
    assert program.executed.pop()[0].command == manifest.command


@pytest.mark.parametrize(
    "words",
    [["run", "torchbench", "--quick"], ["resume", "run"], ["explain", "torchbench/resnet18"]],
    ids=lambda words: words[0],
)
def test_nothing_begins_where_nothing_would_be_compiled(
    program: Program,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
) -> None:
    """Results would be of eager; the message names the variable."""
    store.create(tmp_path / "run", factories.manifest(environment=read_environment()))
    monkeypatch.setenv("TORCH_COMPILE_DISABLE", "1")
    assert cli.main(None, words) == 4
    said = capsys.readouterr().err
    assert "TORCH_COMPILE_DISABLE=1 turns torch.compile off: unset it" in said
    assert program.executed == []
    assert [each.name for each in tmp_path.iterdir()] == ["run"]


def test_resume_goes_on_with_the_manifest(program: Program, tmp_path: Path) -> None:
    """What a run was going to do is read from its directory."""
    manifest = factories.manifest(environment=read_environment())
    store.create(tmp_path / "run", manifest)
    assert cli.main(None, ["resume", str(tmp_path / "run"), "--csv-compat"]) == 0
    ((found, directory, asked),) = program.executed
    assert (found, directory) == (manifest, tmp_path / "run")
    assert asked[CSV_COMPAT]


def test_resume_expects_nothing_of_overrides(
    program: Program, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A table is of models without, whether a run begins or goes on; without one it goes on."""
    plan = factories.plan()
    changed = msgspec.structs.replace(plan.cases[0], overrides=Overrides(disable=("json:dumps",)))
    plan = msgspec.structs.replace(plan, cases=(*plan.cases, changed))
    store.create(tmp_path / "run", factories.manifest(plan, environment=read_environment()))
    words = ["resume", str(tmp_path / "run"), "--expect", "expected.csv", "--update-expected"]
    assert cli.main(None, words) == 2
    assert "alexnet +overrides; leave out --expect" in capsys.readouterr().err
    assert program.executed == []
    assert cli.main(None, words[:2]) == 0


def test_resume_elsewhere_is_refused(
    program: Program, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run is of one environment: what differs is named, with exit code 4."""
    environment = read_environment()
    packages = {**environment.packages, "torch": "2.0.0"}
    changed = msgspec.structs.replace(environment, packages=packages, load_1min=99.0)
    store.create(tmp_path / "run", factories.manifest(environment=changed))
    assert cli.main(None, ["resume", str(tmp_path / "run")]) == 4
    error = capsys.readouterr().err
    assert f"torch was 2.0.0, is {environment.packages['torch']}" in error
    assert "load" not in error
    assert program.executed == []


def test_resume_of_no_run(program: Program, capsys: pytest.CaptureFixture[str]) -> None:
    """A directory that holds no run is named; one of a run that is damaged is another thing."""
    assert cli.main(None, ["resume", "n" * 300]) == 2
    assert cli.main(None, ["resume", "nowhere"]) == 2
    assert "nowhere is not a run directory" in capsys.readouterr().err
    Path("damaged").mkdir()
    Path("damaged/manifest.json").write_text("{")
    assert cli.main(None, ["resume", "damaged"]) == 3
    assert "is damaged" in capsys.readouterr().err
    assert program.executed == []


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["ls", "suites"], "torchbench"),
        (["ls", "backends"], "inductor"),
        (["ls", "models"], "resnet18"),
        (["ls", "models", "torchbench"], "resnet18"),
    ],
    ids=" ".join,
)
def test_ls(capsys: pytest.CaptureFixture[str], words: list[str], expected: str) -> None:
    """There is a name a line, of what can be asked for."""
    assert cli.main(None, words) == 0
    names = capsys.readouterr().out.splitlines()
    assert expected in names
    assert "baseline" not in names


def test_ls_models_without_a_suite_lists_torchbench(capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody need name the suite whose models are most asked for."""
    assert cli.main(None, ["ls", "models"]) == 0
    without = capsys.readouterr().out
    assert cli.main(None, ["ls", "models", "torchbench"]) == 0
    assert without == capsys.readouterr().out


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    """`--version` says which this is."""
    assert cli.main(None, ["--version"]) == 0
    assert dynamometer.__version__ in capsys.readouterr().out


@pytest.mark.parametrize(
    ("error", "code"),
    [(KeyboardInterrupt, 130), (StoreError("run/events.jsonl: no space"), 3)],
    ids=repr,
)
def test_how_a_run_can_end(
    program: Program,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    code: int,
) -> None:
    """Ctrl-C ends with 130 and a directory that fails with 3, neither with a traceback."""

    def end(*words: object, **options: object) -> int:
        raise error

    monkeypatch.setattr(begin, "execute", end)
    assert cli.main("torchbench", ["--only", "resnet18"]) == code


def test_options_say_what_they_do() -> None:
    """Every option of a run has its help and its group."""
    command = cli._script("torchbench")
    for parameter in command.params:
        assert getattr(parameter, "help", None), parameter.name
        assert getattr(parameter, "group", None), parameter.name


@pytest.mark.parametrize("words", [["--quick"], ["--scale", "tiny"]])
def test_what_a_suite_refuses_is_not_in_its_help(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Modules of a corpus have one size, and no handful of them stands for the others."""
    assert cli.main("parity", ["--help"]) == 0
    refusing = capsys.readouterr().out
    assert cli.main("torchbench", ["--help"]) == 0
    assert f"  {words[0]} " in capsys.readouterr().out
    assert f"  {words[0]} " not in refusing
    assert "TARGET is a folder" in refusing
    assert cli.main("parity", [str(tmp_path), *words, "--list"]) == 2
    assert f"leave out {' '.join(words)}" in capsys.readouterr().err


def test_the_known_flags_are_there() -> None:
    """Flags that users of the original scripts know exist by the same name."""
    flags = {flag for parameter in cli._script("torchbench").params for flag in parameter.opts}
    assert {
        "-k", "--filter", "-x", "--exclude", "--only", "-d", "-n", "--repeat", "-t", "--threads",
        "--no-skip", "--quick", "--timeout", "--batch-size", "--partition-id", "--backend",
        "--total-partitions", "--speedup-ts", "--list", "--scale", "-r", "--output-dir",
    } <= flags  # fmt: skip
