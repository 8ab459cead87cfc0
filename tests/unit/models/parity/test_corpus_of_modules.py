"""Reading which test cases a corpus holds, without running any of it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING

import factories
import pytest

from dynamometer.common.errors import UsageError
from dynamometer.common.interfaces.option import defaults
from dynamometer.common.interfaces.outcome import SkippedError
from dynamometer.common.interfaces.run_options import run_options
from dynamometer.common.interfaces.workload_options import QUICK, SCALE, TARGET
from dynamometer.common.planning.selection import Selection, select
from dynamometer.models.parity import FROM_SOURCE, SUITE
from dynamometer.models.parity.compiling import code_of
from dynamometer.models.parity.corpus import Corpus, case_of, cases_of, holds_test_cases
from dynamometer.models.parity.roots import roots_of
from dynamometer.results.values.cases import Scale
from dynamometer.results.values.parity import NO_TEST_CASE

if TYPE_CHECKING:
    from pathlib import Path

HEAD = "raise RuntimeError('imported')\nclass A: ...\n"
ONE = """TESTCASES = [
    # (nn.Module, init_args, forward_args)
    (A, lambda: ([], {}), lambda: ([], {}), True),
]
"""

LISTED = "TESTCASES = [(A, f, g)]\n"


def corpus(folder: Path, **texts: str) -> str:
    """Write files of test cases."""
    for name, text in texts.items():
        (folder / f"test_{name}.py").write_text(HEAD + text)
    return str(folder)


def test_test_cases_are_named_by_project_and_class(tmp_path: Path) -> None:
    """A class' further test cases are numbered; what follows the list changes nothing."""
    twice = "TESTCASES = [(A, f, g), (B, f, g), (A, f, h)]\nclass Test_of_another_runner: ...\n"
    found = Corpus(corpus(tmp_path, owner_net=ONE, other=twice)).specs()
    assert [(each.name, each.origin) for each in found] == [
        ("other.A", "other"), ("other.B", "other"), ("other.A.2", "other"),
        ("owner_net.A", "owner_net"),
    ]  # fmt: skip


def test_a_checkout_and_a_file_are_targets(tmp_path: Path) -> None:
    """The checkout's files are in its folder `generated`."""
    generated = tmp_path / "generated"
    generated.mkdir()
    corpus(generated, net=ONE)
    assert [each.name for each in Corpus(str(tmp_path)).specs()] == ["net.A"]
    file = generated / "test_net.py"
    assert [each.name for each in Corpus(str(file)).specs()] == ["net.A"]
    assert SUITE.target(str(tmp_path)) == str(tmp_path)
    assert SUITE.target(str(file)) == str(file)
    assert SUITE.measured_files({"target": str(tmp_path)}) == (file,)


def test_a_folder_s_own_files_come_before_those_of_a_checkout(tmp_path: Path) -> None:
    """A folder `generated` in a corpus doesn't hide it; dots of a file's name are no project's.

    Nor is nothing at all.
    """
    (tmp_path / "generated").mkdir()
    corpus(tmp_path / "generated", net=ONE)
    corpus(tmp_path, **{"yolo.v5": ONE, "": ONE})
    assert [each.name for each in Corpus(str(tmp_path)).specs()] == ["test_.A", "yolo_v5.A"]
    assert case_of(str(tmp_path), "test_.A") is not None
    assert case_of(str(tmp_path), "yolo_v5.A") is not None


def test_what_holds_no_test_cases_is_no_target(tmp_path: Path) -> None:
    """A user's file of models is not taken for a corpus, nor is a folder of tests."""
    (tmp_path / "test_mine.py").write_text("def net(): ...\n")
    assert SUITE.target(str(tmp_path)) is None
    assert SUITE.target(str(tmp_path / "test_mine.py")) is None
    assert SUITE.target("torchbench") is None
    assert not holds_test_cases(tmp_path / "test_mine.py")


def test_the_last_list_counts(tmp_path: Path) -> None:
    """A project may have a variable of that name."""
    text = "if A:\n    pass\nTESTCASES = None\n" + ONE
    assert [each.name for each in Corpus(corpus(tmp_path, p=text)).specs()] == ["p.A"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("TESTCASES = [(A, f, g)", "test_p.py, from line 3: the list of test cases is no Python"),
        ("TESTCASES = [(A, " + '{"a":' * 800 + ")]", "the list of test cases is no Python"),
        ("TESTCASES = make()", "test_p.py, line 3: TESTCASES is no list"),
        ("TESTCASES = [\n  make(A, f, g),\n]", "test_p.py, line 4: a test case is (Class"),
        ("TESTCASES = [()]", "test_p.py, line 3: a test case is (Class"),
        ("TESTCASES = [(lib.A, f, g)]", "test_p.py, line 3: a test case is (Class"),
        ("TESTCASES = []\nTESTCASES.append((A, f, g))", "test_p.py, line 4: TESTCASES is added to"),
        ("TESTCASES = [(A, f, g)]\nTESTCASES += [(B, f, g)]", "line 4: TESTCASES is added to"),
        (
            LISTED + "for n in (8, 16):\n    TESTCASES.append((B, f, g))",
            "line 5: TESTCASES is added to",
        ),
        (LISTED + "for n in (8, 16): TESTCASES.append((B, f, g))", "line 4: TESTCASES is added to"),
        (LISTED + "if B:\n  TESTCASES += [(B, f, g)]", "line 5: TESTCASES is added to"),
        (LISTED + "def more():\n  TESTCASES[0] = (B, f, g)", "line 5: TESTCASES is added to"),
        (LISTED + "if B:\n  TESTCASES = [(B, f, g)]", "line 5: TESTCASES is added to"),
        (LISTED + "del TESTCASES[0]", "line 4: TESTCASES is added to, or changed"),
        ("x = 1", "holds no test cases"),
    ],
)
def test_what_cant_be_read_is_named(tmp_path: Path, text: str, said: str) -> None:
    """With file and line."""
    with pytest.raises(ValueError, match=r".") as caught:
        Corpus(corpus(tmp_path, p=text)).specs()
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "TESTCASES: list = [(A, f, g)]\nTESTCASES_SLOW = [(B, f, g)]\nTESTCASES == 3\n",
        "\ufeffTESTCASES = ((A, f, g),)\n",
        "TESTCASES=[(A, f, g)]  # TESTCASES = none\n",
        'TESTCASES = [(A, f, g)]\nHELP = """\nTESTCASES = [(Net, ...)]\nends a file"""\n',
        LISTED + "def test():\n    run(\n        TESTCASES[0], len(TESTCASES),\n    )\n",
        LISTED + "HELP = '''\nTESTCASES.append((B, f, g))'''\n",
    ],
)
def test_a_list_is_read_as_python_reads_it(tmp_path: Path, text: str) -> None:
    """Whatever else has a name that begins so."""
    file = tmp_path / "test_p.py"
    file.write_text(text)
    assert [each.name for each in Corpus(str(tmp_path)).specs()] == ["p.A"]


def test_an_entry_that_cant_be_read_costs_no_other(tmp_path: Path) -> None:
    """It has a case in its place, which says what is wrong with it."""
    text = "TESTCASES = [\n  (A, f, g),\n  make(),\n  (nn.ReLU, f, g),\n  (B, f, g),\n]"
    folder = corpus(tmp_path, p=text)
    names = ["p.A", "p.TESTCASES", "p.TESTCASES.2", "p.B"]
    assert [each.name for each in Corpus(folder).specs()] == names
    for name, line in (("p.TESTCASES", 5), ("p.TESTCASES.2", 6)):
        found = case_of(folder, name)
        assert found is not None
        assert found.fault is not None
        assert f"test_p.py, line {line}: a test case is (Class" in found.fault


def test_a_file_that_cant_be_read_costs_no_other(tmp_path: Path) -> None:
    """It has a case, which says what is wrong with it; by itself it is refused."""
    folder = corpus(tmp_path, broken="TESTCASES = [(A, lambda: ([], {'a': f(b.c=4)}))]", net=ONE)
    found = Corpus(folder)
    assert [each.name for each in found.specs()] == ["broken.TESTCASES", "net.A"]
    wanted = rf"^{NO_TEST_CASE}: .*test_broken\.py, from line 3: the list .* no Python"
    with pytest.raises(SkippedError, match=wanted):
        found.load(found.specs()[0], factories.case("broken.TESTCASES"))
    with pytest.raises(ValueError, match=r"test_broken\.py"):
        Corpus(f"{folder}/test_broken.py").specs()


def test_one_test_case_is_read_of_its_file_alone(tmp_path: Path) -> None:
    """It is the one of all that has its name, also where a file's name has a dot."""
    folder = corpus(tmp_path, net=ONE, **{"net.two": ONE, "broken": "TESTCASES = ["})
    every = cases_of(folder)
    assert [*every] == ["broken.TESTCASES", "net.A", "net_two.A"]
    assert {name: case_of(folder, name) for name in every} == every
    assert case_of(folder, "net.B") is None


def test_what_cases_of_a_file_share_is_read_once(tmp_path: Path) -> None:
    """Until the file changes; nothing of it is run for that."""
    suite = Corpus(corpus(tmp_path, net=ONE))
    (spec,) = suite.specs()
    SUITE.read_ahead({"target": suite.target}, spec)
    file = tmp_path / "test_net.py"
    code = code_of(file)
    assert code_of(file) is code
    assert case_of(suite.target, "net.A") is case_of(suite.target, "net.A")
    file.write_text(HEAD.replace("class A", "class B") + ONE.replace("(A,", "(B,") + "\n")
    assert code_of(file) is not code
    assert case_of(suite.target, "net.A") is None
    assert case_of(suite.target, "net.B") is not None


def test_a_list_that_is_another_once_its_file_is_run_is_said_to_be(tmp_path: Path) -> None:
    """What its text shows is measured all the same."""
    (tmp_path / "test_net.py").write_text(
        "import torch\nclass A(torch.nn.Identity): ...\n"
        "def more(cases): cases.append(cases[0])\n"
        "TESTCASES = [(A, lambda: ([], {}), lambda: ([torch.ones(2)], {}))]\nmore(TESTCASES)\n"
    )
    suite = Corpus(str(tmp_path))
    (spec,) = suite.specs()
    (note,) = suite.load(spec, factories.case(spec.name)).notes
    assert "TESTCASES of test_net.py has 2 entries once the file is run, and 1 in its text" in note


@pytest.mark.parametrize("text", ["x = )", "x = " + "(" * 5000, "x = " + "-" * 100_000 + "1"])
def test_a_file_that_is_no_python_is_left_for_its_worker(tmp_path: Path, text: str) -> None:
    """Which reports it as it is."""
    (tmp_path / "test_net.py").write_text(f"{text}\nclass A: ...\n{ONE}")
    suite = Corpus(str(tmp_path))
    (spec,) = suite.specs()
    SUITE.read_ahead({"target": suite.target}, spec)
    with pytest.raises((SyntaxError, MemoryError, RecursionError)):
        suite.load(spec, factories.case(spec.name))


READS_AHEAD = """
import resource, sys
from dynamometer.models.parity import SUITE
from dynamometer.models.parity.corpus import Corpus
resource.setrlimit(resource.RLIMIT_DATA, (2 << 30, 2 << 30))
(spec,) = Corpus(sys.argv[1]).specs()
SUITE.read_ahead({"target": sys.argv[1]}, spec)
"""


@pytest.mark.timeout(60)
def test_a_file_that_is_compiled_into_gigabytes_is_left_for_its_worker(tmp_path: Path) -> None:
    """Which has limits; who reads ahead for all workers goes on."""
    levels = (f"{' ' * depth}try: f()\n{' ' * depth}finally:\n" for depth in range(30))
    target = corpus(tmp_path, net="".join(levels) + " " * 30 + "f()\n" + ONE)
    subprocess.run([sys.executable, "-c", READS_AHEAD, target], check=True)


def test_nothing_named_says_what_to_name() -> None:
    """As `./parity.py` alone does."""
    with pytest.raises(ValueError, match=r"\./parity\.py DIR"):
        Corpus("").specs()


@pytest.mark.parametrize("text", ["\x00", "TESTCASES = [\x00]", "\ud800", "(" * 5000])
def test_any_text_is_read_or_refused(tmp_path: Path, text: str) -> None:
    """Bytes that are no text, nesting that no parser takes."""
    (tmp_path / "test_p.py").write_bytes(f"\nTESTCASES = {text}".encode(errors="surrogatepass"))
    with pytest.raises(ValueError, match=r"test_p\.py"):
        Corpus(str(tmp_path)).specs()


@pytest.mark.parametrize(("option", "value"), [(SCALE, Scale.TINY), (QUICK, True)])
def test_modules_are_what_files_make_them(tmp_path: Path, option: object, value: object) -> None:
    """Neither shrunk nor a handful of them."""
    every = (*run_options(of_suites=SUITE.options), TARGET)
    asked = defaults(every).but(TARGET, corpus(tmp_path, net=ONE))
    assert SUITE.opening(asked) == {"target": str(tmp_path)}
    with pytest.raises(UsageError, match="leave out"):
        SUITE.opening(asked.but(option, value))  # type: ignore[arg-type]  # either option's


def test_projects_are_looked_through_instead(tmp_path: Path) -> None:
    """Paths are said from the root, packages by name; not together with a corpus."""
    typed = defaults((*run_options(of_suites=SUITE.options), TARGET))
    asked = typed.but(FROM_SOURCE, (str(tmp_path), "torchvision"))
    opening = SUITE.opening(asked)
    assert opening == {"sources": f"{tmp_path}\ntorchvision"}
    net = tmp_path / "net.py"
    net.write_text("from torch import nn\nclass Net(nn.Module): ...\n")
    assert SUITE.measured_files(opening) == (net,)
    assert [each.name for each in SUITE.open({"sources": str(net)}).specs()] == ["net.Net"]
    with pytest.raises(UsageError, match="leave out here"):
        SUITE.opening(asked.but(TARGET, "here"))
    with pytest.raises(UsageError, match='--from-source "" names nothing'):
        SUITE.opening(typed.but(FROM_SOURCE, ("torchvision", "")))
    with (
        tempfile.TemporaryDirectory(dir="/dev/shm") as hidden,
        pytest.raises(UsageError, match="have a /dev/shm of their own"),
    ):
        SUITE.opening(typed.but(FROM_SOURCE, ("torchvision", hidden)))
    assert SUITE.opening(typed) == {}


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ("(f, f, f)", "f is no class of nn.Module"),
        ("(A, [], f)", "its init_args is no function"),
        ("(A, lambda: [], f)", "its init_args doesn't return a list and a dictionary"),
        ("(A, lambda: ([], None), f)", "its init_args doesn't return a list and a dictionary"),
        ("(A, lambda: (3, {}), f)", "its init_args doesn't return a list and a dictionary"),
        ("(A, *(), *(), *())", "it has fewer parts"),
        (
            "(A, f, lambda: torch.ones(2))",
            "its forward_args doesn't return a list and a dictionary",
        ),
    ],
)
def test_an_entry_that_is_no_test_case_is_skipped(tmp_path: Path, entry: str, why: str) -> None:
    """Which one it is and how one looks is said, and eager is not blamed."""
    text = (
        "import torch\n"
        "class A(torch.nn.Module):\n"
        "    def forward(self): ...\n"
        "def f(): return [], {}\n"
        f"TESTCASES = [(A, f, f), {entry}]\n"
    )
    (tmp_path / "test_p.py").write_text(text)
    suite = Corpus(str(tmp_path))
    spec = suite.specs()[1]
    wanted = f"test_p.py, entry 2 of TESTCASES: {why}; a test case is (Class, init_args"
    with pytest.raises(SkippedError, match=f"^{NO_TEST_CASE}: .*{re.escape(wanted)}"):
        suite.load(spec, factories.case(spec.name))


@pytest.mark.timeout(30)
def test_nothing_but_a_file_is_waited_for(tmp_path: Path) -> None:
    """A pipe that nobody writes to, and a device, are cases that say so."""
    os.mkfifo(tmp_path / "test_a.py")
    (tmp_path / "test_b.py").symlink_to("/dev/null")
    assert SUITE.target(corpus(tmp_path, net=ONE)) == str(tmp_path)
    suite = Corpus(str(tmp_path))
    assert [each.name for each in suite.specs()] == ["a.TESTCASES", "b.TESTCASES", "net.A"]
    for name in ("a", "b"):
        found = case_of(str(tmp_path), f"{name}.TESTCASES")
        assert found is not None
        assert "Is a pipe or device" in (found.fault or "")
        with pytest.raises(OSError, match="Is a pipe or device"):
            roots_of(tmp_path / f"test_{name}.py")


@pytest.mark.timeout(30)
def test_thousands_of_lists_are_refused_at_once(tmp_path: Path) -> None:
    """Where none of them can be parsed."""
    folder = corpus(tmp_path, p="TESTCASES=1\n" * 20_000 + "TESTCASES=)")
    with pytest.raises(ValueError, match="line 20003: the list of test cases is no Python"):
        Corpus(folder).specs()


def test_a_file_that_cant_be_read_holds_none(tmp_path: Path) -> None:
    """The others of its folder do; among these it is a case."""
    (tmp_path / "test_a.py").symlink_to("nowhere")
    assert SUITE.target(str(tmp_path)) is None
    assert SUITE.target(corpus(tmp_path, net=ONE)) == str(tmp_path)
    assert [each.name for each in Corpus(str(tmp_path)).specs()] == ["a.TESTCASES", "net.A"]


LONG = "long_" * 30


@pytest.mark.parametrize(
    "name", [f"{LONG}x", "a\nb", "\udcff"], ids=["long", "two lines", "no UTF-8"]
)
def test_a_file_of_any_name_is_run_under_some_name(tmp_path: Path, name: str) -> None:
    """Which finds it again; the others are as they were."""
    class_name = "A" * 150
    text = f"class {class_name}: ...\nTESTCASES = [({class_name}, f, g)]\n"
    (tmp_path / f"test_{name}.py").write_text(text)
    (tmp_path / "test_b.py").write_text(HEAD + LISTED)
    found = Corpus(str(tmp_path)).specs()
    assert {each.name for each in select(found, Selection())} == {each.name for each in found}
    assert "b.A" in {each.name for each in found}
    (odd,) = (each.name for each in found if each.name != "b.A")
    again = case_of(str(tmp_path), odd)
    assert again is not None
    assert again.class_name == class_name
