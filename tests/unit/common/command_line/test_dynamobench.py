"""Command lines of PyTorch's harness."""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path

import pytest

from dynamometer.common import registry
from dynamometer.common.command_line.dynamobench.translation import their_options, translated
from dynamometer.common.errors import UsageError
from dynamometer.common.interfaces.run_options import run_options
from dynamometer.common.studies.study import options_of

OURS = frozenset(
    flag for each in run_options(options_of(*registry.studies())) for flag in each.flags
)
ROOT = os.environ.get("TORCHBENCH_ROOT", "")
THEIR_PARSER = Path(ROOT, "userbenchmark/dynamo/dynamobench/common.py")


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("--inductor --only resnet18", "--backend inductor --only resnet18"),
        ("--export-aot-inductor -dcpu", "--backend aot_inductor -dcpu"),
        ("--cold-start-latency", "--cold"),
        ("--cold_start_latency", "--cold"),
        ("--warm-start-latency -n50 -dcpu", "--warm -n50 -dcpu"),
        ("--output-directory=out", "--output-dir out"),
        ("--output-directory out", "--output-dir out"),
        ("--exclude-exact resnet18", "--exclude ^resnet18$"),
        ("--batch_size=4", "--batch-size 4"),
        ("--devices cuda", "--device cuda"),
        ("--torchscript-jit-trace", "--speedup-ts"),
        ("--freezing --cpp-wrapper", "--config freezing --config cpp-wrapper"),
        ("--inductor-compile-mode max-autotune", "--config max-autotune"),
        ("--inductor-config=max_autotune=True", "--config config.max_autotune=True"),
        ("--disable-cudagraphs -c freezing=True", "--config no-cudagraphs -c freezing=True"),
        ("--export --speedup-onnx", "--backend export --speedup-onnx"),
        ("-quick --inductor=7 --ci=x", "-quick --inductor=7 --ci=x"),
        ("--only a -- --inductor", "--only a -- --inductor"),
        ("-x=resnet18 -d=cpu -k =a", "-xresnet18 -dcpu -k =a"),
        ("-c=freezing=True -- -x=a", "-cfreezing=True -- -x=a"),
        ("--no-such-flag --inductor", "--no-such-flag --backend inductor"),
        ("", ""),
    ],
)
def test_options_of_theirs_become_ours(typed: str, read: str) -> None:
    """What has another name here is replaced; what nobody knows is left to the parser."""
    assert translated(typed.split(), OURS).arguments == tuple(read.split())


def test_what_is_done_anyway_is_said() -> None:
    """Each such option is taken, with why it isn't needed."""
    found = translated(["--ci", "--isolate", "-v", "--accuracy"], OURS)
    assert found.arguments == ("--accuracy",)
    assert [note.partition(":")[0] for note in found.notes] == ["--ci", "--isolate", "--verbose"]


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("--device-index 1", "CUDA_VISIBLE_DEVICES=1"),
        ("--optimus all", "-c KEY=VALUE"),
        ("--speedup-dynamo-ts", "--speedup-ts"),
        ("--output-directory out --output=x.csv", "--output all of the path"),
        ("--part", "--part needs a value"),
        ("-x= --accuracy", "-x= names nothing"),
    ],
)
def test_what_is_not_done_is_refused(typed: str, says: str) -> None:
    """The refusal says what is done instead."""
    with pytest.raises(UsageError, match=says.split("=", maxsplit=1)[0]) as raised:
        translated(typed.split(), OURS)
    assert says in str(raised.value)


def test_ours_are_never_replaced() -> None:
    """A spelling that both have means ours."""
    both = OURS & {flag for name, each in their_options().items() for flag in (name, *each.also)}
    assert len(both) > 20
    for flag in both:
        assert translated([flag, "--ci"], OURS).arguments == (flag,)


def test_each_comes_to_one_thing() -> None:
    """An option is the same, becomes another, isn't needed or is refused, and never two of these.

    What is the same is an option of ours; so is what another becomes.
    """
    for name, each in their_options().items():
        said = [each.same is not None, bool(each.becomes), each.needless, each.refused]
        assert sum(map(bool, said)) == 1, name
        flags = [name] if each.same is not None else each.becomes
        assert [flag for flag in flags if flag.startswith("-") and flag not in OURS] == [], name


@pytest.mark.skipif(not THEIR_PARSER.is_file(), reason="TORCHBENCH_ROOT names no checkout")
def test_none_of_theirs_is_missing() -> None:
    """Every option of a checkout's parser is in the table, in each of its spellings."""
    tree = ast.parse(THEIR_PARSER.read_text())
    (parser,) = (
        each for each in ast.walk(tree)
        if isinstance(each, ast.FunctionDef) and each.name == "parse_args"
    )  # fmt: skip
    theirs = {
        word.value
        for call in ast.walk(parser)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr == "add_argument"
        for word in call.args
        if isinstance(word, ast.Constant)
    }
    known = {flag for name, each in their_options().items() for flag in (name, *each.also)}
    assert len(theirs) > 100
    assert theirs - known == set()


def test_columns_that_it_names_are_there() -> None:
    """Whoever is told to look something up in a CSV file finds it."""
    texts = [
        text
        for each in their_options().values()
        for text in (each.same, each.needless, each.refused)
        if text
    ]
    named = {
        name
        for text in texts
        for pair in re.findall(r"`(\w+)` in the CSV|in the CSV of a timed run \((\w+)\)", text)
        for name in filter(None, pair)
    }
    tables = [table for study in registry.studies() for table in study.tables()]
    assert named
    assert named <= {column.name for table in tables for column in table.columns}
