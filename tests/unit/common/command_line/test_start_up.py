"""The real program, started as users start it, up to where it would run something."""

from __future__ import annotations

import configparser
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from dynamometer.__main__ import _NEEDED, main

ROOT = Path(__file__).resolve().parents[4]
SCRIPT = str(ROOT / "torchbench.py")
STORED = str(ROOT / "tests" / "golden" / "format_2")
STORED_COMMANDS = ("export", "report", "repro", "rm", "show")
HEAVY = {"torch", "scipy", "rich", "numpy", "torchvision", "timm", "transformers", "pyarrow"}


@dataclass(frozen=True)
class Ended:
    """How a start ended: exit code, output, and the top-level modules that were imported."""

    code: int
    out: str
    err: str
    imported: frozenset[str]


def start(folder: Path, *words: str, **variables: str) -> Ended:
    """Start Python on some words in a folder, and list what it imports."""
    kept = {name: text for name, text in os.environ.items() if name != "TORCHBENCH_ROOT"}
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *words],
        cwd=folder,
        env={**kept, "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": "", **variables},
        capture_output=True,
        text=True,
        timeout=3600,
        check=False,
    )
    lines = done.stderr.splitlines()
    imports = [line for line in lines if line.startswith("import time:")]
    rest = [line for line in lines if not line.startswith("import time:")]
    modules = {line.rsplit("|", 1)[-1].strip().partition(".")[0] for line in imports}
    return Ended(done.returncode, done.stdout, "\n".join(rest), frozenset(modules))


def test_imports_are_seen(tmp_path: Path) -> None:
    """The way imports are listed here would notice one of the heavy packages."""
    ended = start(tmp_path, "-c", "import rich")
    assert "rich" in ended.imported


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([SCRIPT, "--help"], "Usage: "),
        ([SCRIPT, "--list"], "resnet18"),
        ([SCRIPT, "--list", "-d", "cuda", "--quick"], "resnet18"),
        (["-m", "dynamometer", "--help"], "Usage: dynamometer"),
        (["-m", "dynamometer", "run", "--help"], "Usage: dynamometer run"),
        (["-m", "dynamometer", "ls", "models"], "resnet18"),
        (["-m", "dynamometer", "ls", "backends"], "inductor"),
        (["-m", "dynamometer", "ls", "backends", "--long"], "freezing"),
        (["-m", "dynamometer", "ls", "backends", "--json"], '"inference_only": true'),
        (["-m", "dynamometer", "ls", "suites"], "torchbench"),
        (["-m", "dynamometer", "ls", "exports"], "junit"),
        (["-m", "dynamometer", "ls", "runs", STORED], "speedup"),
        (["-m", "dynamometer", "repro", f"{STORED}/speedup", "lennard_jones"], "--only"),
        *((["-m", "dynamometer", name, "--help"], "RUN") for name in STORED_COMMANDS),
        (["-m", "dynamometer", "history", "--help"], "MODEL"),
        (["-m", "dynamometer", "index", "--help"], "DIR"),
    ],
    ids=lambda value: " ".join(value).replace(SCRIPT, "script") if isinstance(value, list) else "",
)
def test_what_only_tells_is_light(tmp_path: Path, words: list[str], expected: str) -> None:
    """Help and lists come without importing torch or anything else that takes a while."""
    folder = ROOT if words[0] == "-m" else tmp_path
    ended = start(folder, *words)
    assert ended.code == 0, ended.err
    assert expected in ended.out
    assert not ended.imported & HEAVY
    assert ended.err == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", ["show {}", "show {} lennard_jones", "export {} -o {}", "report {} -o {}"]
)
def test_stored_runs_are_read_without_torch(tmp_path: Path, words: str) -> None:
    """What they come to is computed anew, for which numbers are needed, and no more."""
    filled = [word.replace("{}", f"{STORED}/speedup") for word in words.split()]
    filled[-1] = str(tmp_path / "out") if "-o" in filled else filled[-1]
    ended = start(ROOT, "-m", "dynamometer", *filled)
    assert ended.code == 0, ended.err
    assert ended.out
    assert not ended.imported & {"torch", "rich"}


@pytest.mark.slow
def test_a_history_is_told_without_torch(tmp_path: Path) -> None:
    """Neither where an index is to be made, nor where one is there."""
    index = str(tmp_path / "index.sqlite")
    for _ in range(2):
        words = ("-m", "dynamometer", "history", "--index", index, "--output-dir", STORED)
        ended = start(ROOT, *words)
        assert ended.code == 0, ended.err
        assert "lennard_jones" in ended.out
        assert not ended.imported & {"torch", "rich", "pyarrow"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ("-k [", 2, ["-k '['", "not a regular expression", "unterminated"]),
        ("--backend inducter", 2, ["unknown backend 'inducter'", "did you mean inductor"]),
        (
            "--backend no_such_module:fast",
            2,
            ["no_such_module:fast", "can't be loaded", "no module"],
        ),
        ("--only resnet81", 2, ["unknown model 'resnet81'", "did you mean resnet18", "--list"]),
        (
            "--torchbench-root /no/where",
            2,
            ["/no/where is no checkout", "git clone https://github.com/pytorch/benchmark"],
        ),
        ("-d cuda --quick", 4, ["no CUDA device here", "-d cpu", "nvidia-smi"]),
        ("--only resnet18 --quick", 2, ["--only and --quick", "leave out one"]),
        ("--only resnet18 -k vgg", 5, ["none of the suite's"]),
        ("--offline-weights", 2, ["--offline-weights", "go with --torchbench-root"]),
        ("--partition-id 2 --total-partitions 2", 2, ["--partition-id 2 is not below"]),
        ("--backend inductor:freezng", 2, ["unknown option 'freezng'", "did you mean freezing"]),
        ("--backend inductor:default,max-autotune", 2, ["default and max-autotune contradict"]),
        ("--backend inductor -c cudagraphs -c no-cudagraphs", 2, ["contradict each other"]),
        ("--backend inductor:freezing --training", 2, ["freezing is for inference"]),
        ("--backend eager -c freezing", 2, ["-c freezing", "eager has no options"]),
        ("--backend all --backend eager", 2, ["--backend all", "name no other"]),
        ("--backend baseline", 2, ["baseline is always measured", "--backend"]),
        ("-k nothing_like_this", 5, ["none of the suite's", "--list"]),
        ("--batch-size 0", 2, ["--batch-size"]),
        ("--memory-limit 12Q", 2, ["'12Q' is not a size such as 800M or 12G"]),
        ("--timeout inf", 2, ["--timeout", "inf is no finite number"]),
        ("--target nan", 2, ["--target", "nan is no finite number"]),
        ("--seed 4294967296", 2, ["--seed", "range"]),
        ("--scale huge", 2, ["--scale", "tiny", "small", "full"]),
        ("--no-such-flag", 2, ["--no-such-flag"]),
        ("--output-dir /dev/null/runs --quick", 2, ["/dev/null/runs", "--output-dir"]),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, words: str, code: int, says: list[str]) -> None:
    """A wrong command line ends with its code and a message, soon and without leaving a trace."""
    ended = start(tmp_path, SCRIPT, *words.split())
    assert ended.code == code, ended.err
    for text in says:
        assert text in ended.err
    assert "Traceback" not in ended.err
    assert not ended.imported & HEAVY
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("run torchbnech", ["unknown suite 'torchbnech'", "did you mean torchbench"]),
        ("run no_such_module:suite", ["no_such_module:suite", "can't be loaded"]),
        ("run :suite", ["unknown suite ':suite'", "known: corpus"]),
        ("ls models torchbnech", ["did you mean torchbench"]),
        ("ls suites --long", ["--long", "ls backends"]),
        ("ls nothing", ["suites", "backends", "models"]),
        ("frobnicate", ["frobnicate"]),
        ("ls runs /no/where", ["/no/where can't be read"]),
        ("repro /no/where alexnet", ["/no/where is not a run directory"]),
        ("report /no/where", ["/no/where is not a run directory"]),
        ("rm --yes /no/where", ["/no/where is not a run directory"]),
        ("history --since monday", ["--since 'monday' is neither 4w", "2026-11-01"]),
        ("history --output-dir /no/where", ["there is no /no/where", "dynamometer index DIR"]),
        ("index /no/where", ["/no/where", "does not exist"]),
        (f"repro {STORED}/speedup lennard", ["did you mean lennard_jones", "dynamometer show"]),
    ],
)
def test_what_the_command_refuses(tmp_path: Path, words: str, says: list[str]) -> None:
    """The `dynamometer` command answers a wrong word with exit code 2 and what was meant."""
    ended = start(ROOT, "-m", "dynamometer", *words.split())
    assert ended.code == 2, ended.err
    for text in says:
        assert text in ended.err
    assert "Traceback" not in ended.err
    assert not ended.imported & HEAVY


def test_a_missing_package_is_named(tmp_path: Path) -> None:
    """Without its dependencies the program says which is missing and what to install."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); sys.argv[1:] = ['--help']; "
        "from dynamometer.__main__ import main; raise SystemExit(main('torchbench'))"
    )
    ended = start(tmp_path, "-I", "-S", "-c", code, str(ROOT))
    assert ended.code == 2, ended.err
    assert re.search(r"the package (click|msgspec) is not installed", ended.err)
    assert "make setup" in ended.err


def test_no_memory_to_start_with(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is a fault, and no result that has changed."""

    def fail(_: object) -> int:
        raise MemoryError

    monkeypatch.setattr("dynamometer.common.command_line.cli.main", fail)
    handler = signal.getsignal(signal.SIGINT)
    assert main() == 3
    signal.signal(signal.SIGINT, handler)
    assert "no memory is left" in capsys.readouterr().err


def test_a_script_says_it_too(tmp_path: Path) -> None:
    """Before it imports anything to declare its options with."""
    code = (
        "import runpy, sys; sys.path.insert(0, sys.argv[1]); sys.argv = [sys.argv[2], '--help'];"
        " runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    ended = start(tmp_path, "-I", "-S", "-c", code, str(ROOT), SCRIPT)
    assert ended.code == 2, ended.err
    assert re.search(r"the package (click|msgspec) is not installed", ended.err)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("package", "words"), [("rtoml", ["--list"]), ("rich", ["--only", "resnet18"])]
)
def test_a_package_that_is_imported_late_is_named_too(
    tmp_path: Path, package: str, words: list[str]
) -> None:
    """An environment made for an earlier version may lack what is needed since."""
    code = (
        f"import sys; sys.modules[{package!r}] = None; sys.path.insert(0, sys.argv[1]);"
        f" sys.argv[1:] = {words!r}; from dynamometer.__main__ import main;"
        " raise SystemExit(main('torchbench'))"
    )
    ended = start(tmp_path, "-P", "-c", code, str(ROOT))
    assert ended.code == 2, ended.err
    assert f"the package {package} is not installed" in ended.err


def test_what_is_needed_is_what_is_installed() -> None:
    """The packages whose absence is explained are those that are declared, but for torch."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    declared = setup["options"]["install_requires"].split("\n")
    assert {line.split()[0] for line in declared if line} - {"torch"} == _NEEDED


@pytest.mark.slow
def test_the_script_takes_its_folder_off_the_path(tmp_path: Path) -> None:
    """A benchmarked model's own `import common` or `import results` doesn't meet ours."""
    code = (
        "import runpy, sys\n"
        "sys.argv = [sys.argv[1], '--list', '--quick']\n"
        "sys.path.insert(0, sys.argv[0].rpartition('/')[0])\n"
        "try: runpy.run_path(sys.argv[0], run_name='__main__')\n"
        "except SystemExit as end: assert end.code == 0\n"
        "try: import common\n"
        "except ModuleNotFoundError: print('not ours')\n"
    )
    ended = start(tmp_path, "-c", code, SCRIPT, PYTHONPATH="")
    assert ended.out.endswith("not ours\n"), ended.err


@pytest.mark.slow
@pytest.mark.parametrize(
    "script", ["huggingface.py", "parity.py", "timm_models.py", "torchbench.py"]
)
def test_a_script_takes_nothing_else_off_the_path(tmp_path: Path, script: str) -> None:
    """Where Python leaves out its folder (PYTHONSAFEPATH), the first is the user's own."""
    own, ours = tmp_path / "own", tmp_path / "ours"
    own.mkdir()
    ours.mkdir()
    (ours / "dynamometer").symlink_to(ROOT / "dynamometer")
    (own / "half.py").touch()
    folders = os.pathsep.join(map(str, (own, ours)))
    variables = {"PYTHONPATH": folders, "PYTHONSAFEPATH": "1"}
    words = (str(ROOT / "examples" / "parity"),) if script == "parity.py" else ()
    ended = start(tmp_path, str(ROOT / script), *words, "--backend", "half:nosuch", **variables)
    assert ended.code == 2, ended.err
    assert "module 'half' has no attribute 'nosuch'" in ended.err
