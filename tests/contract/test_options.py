"""Every option of every command: shared ones, and those of all registered studies and suites."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import factories
import pytest

from dynamometer.common import registry
from dynamometer.common.command_line import calibrate, explain
from dynamometer.common.command_line.options import command
from dynamometer.common.command_line.stored import export, removal, repro, resume, show
from dynamometer.common.errors import UsageError
from dynamometer.common.interfaces.option import (
    Argument,
    Arguments,
    ByteSize,
    DeviceType,
    Flag,
    Member,
    OneOf,
    Option,
    Request,
    Several,
    Switch,
    Valued,
    defaults,
    never,
)
from dynamometer.common.interfaces.run_options import run_options
from dynamometer.common.interfaces.workload_options import TARGET
from dynamometer.common.studies.study import options_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

OF_RUN = run_options(
    options_of(*registry.studies()),
    [option for source in registry.suites() for option in source.options],
)
COMMANDS: dict[str, tuple[Option[Any], ...]] = {
    "run": (*OF_RUN, TARGET),
    "resume": resume.OPTIONS,
    "calibrate": calibrate.OPTIONS,
    "explain": explain.OPTIONS,
    "export": export.OPTIONS,
    "repro": repro.OPTIONS,
    "rm": removal.OPTIONS,
    "show": show.OPTIONS,
}
ALL = [(name, option) for name, options in COMMANDS.items() for option in options]


def parsed(options: Sequence[Option[Any]], words: Sequence[str]) -> Request:
    """Return what words ask for, of a command that has only these options."""
    kept = []
    made = command("test", options, lambda asked, _: kept.append(asked) or 0, "A test.")
    made.main(list(words), standalone_mode=False, obj=("test", []))
    return kept.pop()


@pytest.fixture(params=ALL, ids=lambda each: f"{each[0]} {each[1].flag}")
def option(request: pytest.FixtureRequest) -> Option[Any]:
    """An option."""
    found: Option[Any] = request.param[1]
    return found


@pytest.fixture(autouse=True)
def empty_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No option has its value from the environment."""
    for _, option in ALL:
        if isinstance(option, Valued) and option.variable:
            monkeypatch.delenv(option.variable, raising=False)


@pytest.mark.parametrize("name", COMMANDS)
def test_no_two_are_typed_alike(name: str) -> None:
    """Each flag of a command is one option's, as is what the parser calls it."""
    flags = [flag for option in COMMANDS[name] for flag in option.flags]
    assert sorted(set(flags)) == sorted(flags)
    keys = [option.key for option in COMMANDS[name]]
    assert sorted(set(keys)) == sorted(keys)


@pytest.mark.parametrize("flags", [("--seed",), ("-n", "--nets"), ("--batch_size",)])
def test_one_of_a_plugin_that_is_called_as_another_is_refused(flags: tuple[str, ...]) -> None:
    """Both are named, with what they do, before anything is parsed."""
    own = Flag(flags, group="Execution", help="Of a plugin.")
    with pytest.raises(UsageError, match=rf" and {own.flag} \(Of a plugin\.\); a plugin must"):
        command("run", (*OF_RUN, own), lambda asked, _: 0, "A test.")


def test_untyped_it_is_its_default(option: Option[Any]) -> None:
    """The parser and a request that was never parsed agree."""
    if not getattr(option, "is_required", isinstance(option, Arguments)):
        asked = parsed([option], [])
        assert asked.values == defaults([option]).values
        assert asked.typed == frozenset()


def words_for(reads: click.ParamType[Any], folder: Path) -> list[Any]:
    """Return values that can be read."""
    match reads:
        case Member():
            return list(reads.kind)
        case click.Choice():
            return list(reads.choices)
        case click.Path():
            return [folder]
        case click.FloatRange():
            return [0.25]
        case click.IntRange() | ByteSize():
            return [7]
        case _:
            assert reads is click.STRING or isinstance(reads, DeviceType)
            return ["a:b"] if reads is click.STRING else ["xpu"]


def values_of(option: Option[Any], folder: Path) -> list[Any]:
    """Return values that an option can be given."""
    match option:
        case Flag():
            return [True]
        case Switch():
            return [True, False]
        case OneOf():
            return list(option.values)
        case Arguments():
            return [(each, each) for each in words_for(option.reads, folder)]
        case Several():
            return [(), *((each, each) for each in words_for(option.reads, folder))]
        case Valued() | Argument():
            return words_for(option.reads, folder)
        case _:
            pytest.fail(f"{option.flag} is typed in a way that isn't tested")


def test_what_it_says_is_parsed_to_the_same(option: Option[Any], tmp_path: Path) -> None:
    """Whatever value it can have, the words for it give that value."""
    folder = tmp_path / "file" if option.flag in NEW_FILES else tmp_path
    for value in values_of(option, folder):
        again = parsed([option], option.argv(value))
        assert again[option] == value
        assert type(again[option]) is type(value)
        assert again.typed == ({option} if option.argv(value) else set())


NEW_FILES = {"--decisions", "--expect", "--page", "--output", "--batch-size-file"}
"""Options that name a file which isn't there yet."""


def test_what_it_names_goes_with_it(option: Option[Any]) -> None:
    """What it excludes and what it needs can be typed for the same run."""
    others = [*(option.excludes.others if option.excludes else ())]
    others += [option.needs.other] if option.needs else []
    assert set(others) <= set(OF_RUN)
    assert option not in others
    assert option.excludes is None or option.excludes.why.startswith(option.flag)


NO_DIFFERENCE = {
    *("--filter", "--exclude", "--quick", "--partition-id", "--total-partitions", "--list"),
    *("--overrides", "--overhead", "--output-dir", "--output", "--csv-compat", "--expect"),
    *("--update-expected", "--sink", "--batch-size-file", "--json", "--config", "--jobs"),
    *("--speedup-ts", "--speedup-onnx", "--speedup-openvino", "--speedup-export", "--speedup-trt"),
    "--retries-for",
    "TARGET",
}
"""What makes no difference to a case of a plan, or is said of it by other options."""


@pytest.mark.parametrize("option", COMMANDS["run"], ids=lambda option: option.flag)
def test_it_is_said_again_or_makes_no_difference(option: Option[Any]) -> None:
    """Whoever declares an option of a run says which value repeats a case."""
    assert (option.again is never) == (option.flag in NO_DIFFERENCE)


def test_asking_it_of_a_case_takes_a_plan_alone(option: Option[Any]) -> None:
    """What repeats a case is read off the plan; where it is said, it can be typed."""
    plan = factories.plan()
    value = option.value_again(plan, plan.cases[0])
    if value is not None:
        assert parsed([option], option.argv(value))[option] == value
