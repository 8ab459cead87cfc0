"""An option of the command line: how it is typed, what it excludes, how it is said again.

It is declared once, beside what understands it. Its value is asked for by the option itself,
`request[SEED]`, so that it has a type and no name has to be written twice.
"""

from __future__ import annotations

import math
import re
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, cast

import click
import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from click.shell_completion import CompletionItem

    from dynamometer.results.values.cases import Case, RunPlan

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)

Group = Literal["Selection", "Workload", "Measurement", "Execution", "Output"]
"""Where the help shows an option."""


class Exclusion(msgspec.Struct, frozen=True):
    """What an option can't go with.

    Attributes:
        others: the options it excludes.
        why: what it does that contradicts them, as the beginning of a sentence.
    """

    others: Sequence[Option[Any]]
    why: str


class Need(msgspec.Struct, frozen=True):
    """What an option can't do without.

    Attributes:
        other: the option it goes with.
        why: what is said to whoever leaves that out.
    """

    other: Option[Any]
    why: str


def never(plan: RunPlan, case: Case) -> None:
    """Return nothing: for a case alone the option makes no difference."""
    del plan, case


def always(plan: RunPlan, case: Case) -> Literal[True]:
    """Return that it is typed for every case: for the option that asks what the run asks."""
    del plan, case
    return True


class _Typed(msgspec.Struct, frozen=True, eq=False):
    """What can be typed; apart, as it is given by position, and what `Option` adds by name."""

    flags: tuple[str, ...]


class Option(_Typed, Generic[T], frozen=True, kw_only=True, eq=False):
    """An option whose value is a `T`; each class below is one way to type it.

    Attributes:
        flags: how it is typed, such as `("-n", "--repeat")`.
        default: its value where it isn't typed.
        group: of the help.
        help: what it does.
        again: the value that repeats a case of a plan; `None` where none needs to be given.
        is_always_said: whether a command that repeats a case gives it even where it is the default.
        excludes: what it can't go with.
        needs: what it can't do without.
    """

    default: T
    group: Group
    help: str = ""
    again: Callable[[RunPlan, Case], T | None] = never
    is_always_said: bool = False
    excludes: Exclusion | None = None
    needs: Need | None = None

    @property
    def flag(self) -> str:
        """How it is typed in full."""
        return next((each for each in self.flags if each.startswith("--")), self.flags[0])

    @property
    def named(self) -> str:
        """How a message names it."""
        return self.flag

    @property
    def key(self) -> str:
        """What the parser calls it; no two options of a command have the same."""
        return self.flag.strip("-").replace("-", "_")

    def argv(self, value: T) -> list[str]:
        """Return the arguments of a command line that give it a value."""
        raise NotImplementedError  # each way to type an option has its own

    def value_of(self, parsed: Any) -> T:
        """Return its value, given what the parser made of a command line."""
        return cast("T", parsed)

    def value_again(self, plan: RunPlan, case: Case) -> T | None:
        """Return the value that a command gives it which repeats a case; `None` for no word."""
        value = self.again(plan, case)
        return value if self.is_always_said or value != self.default else None


class Flag(Option[bool], frozen=True, kw_only=True, eq=False):
    """Typed or not."""

    default: bool = False

    def argv(self, value: bool) -> list[str]:  # noqa: FBT001  it is the option's value
        """Return its flag."""
        return [self.flag] if value else []


class Switch(Option[T], Generic[T], frozen=True, kw_only=True, eq=False):
    """Two flags, for yes and for no; `T` is `bool`, or `bool | None` for neither."""

    def argv(self, value: T) -> list[str]:
        """Return one of its flags."""
        yes, no = self.flags
        return [] if value is None else [yes if value else no]


class OneOf(Option[T], Generic[T], frozen=True, kw_only=True, eq=False):
    """A flag for each value, of which one at most is typed.

    Attributes:
        values: what the flags stand for, in their order.
        helps: what each of them does.
    """

    values: Sequence[T]
    helps: Sequence[str]

    @property
    def named(self) -> str:
        """Name all its flags."""
        return " and ".join(self.flags)

    @property
    def key(self) -> str:
        """Join its flags."""
        return "_or_".join(each.strip("-").replace("-", "_") for each in self.flags)

    def argv(self, value: T) -> list[str]:
        """Return a value's flag; the default may have none."""
        return [flag for flag, each in zip(self.flags, self.values, strict=True) if each == value]

    def value_of(self, parsed: Any) -> T:
        """Return what a flag stands for."""
        return self.default if parsed is None else self.values[self.flags.index(parsed)]


class Valued(Option[T], Generic[T], frozen=True, kw_only=True, eq=False):
    """A flag and a word; without a default it is `None` where it isn't typed.

    Attributes:
        reads: what makes a value of the word.
        metavar: what the help calls the word; `None` where `reads` says it.
        variable: of the environment, which holds the word where it isn't typed.
    """

    reads: click.ParamType[T]
    metavar: str | None = None
    variable: str | None = None

    def argv(self, value: T) -> list[str]:
        """Return its flag and the word."""
        return [] if value is None else [self.flag, str(value)]


class Several(Option[tuple[T, ...]], Generic[T], frozen=True, kw_only=True, eq=False):
    """A flag and a word, which may be repeated.

    Attributes:
        reads: what makes a value of each word.
        metavar: what the help calls the word.
    """

    default: tuple[T, ...] = ()
    reads: click.ParamType[T]
    metavar: str

    def argv(self, value: tuple[T, ...]) -> list[str]:
        """Return its flag with each word."""
        return [word for each in value for word in (self.flag, str(each))]


class Argument(Option[T], Generic[T], frozen=True, kw_only=True, eq=False):
    """A word without a flag, which is what the help calls it.

    Attributes:
        reads: what makes a value of the word.
        is_required: whether it must be typed.
    """

    group: Group = "Selection"
    reads: click.ParamType[T]
    is_required: bool = False

    @property
    def key(self) -> str:
        """Keep clear of the options."""
        return f"argument_{self.flag.lower()}"

    def argv(self, value: T) -> list[str]:
        """Return the word."""
        return [] if value is None else [str(value)]


class Arguments(Option[tuple[T, ...]], Generic[T], frozen=True, kw_only=True, eq=False):
    """Words without a flag, one at least where they are required.

    Attributes:
        reads: what makes a value of each word.
        is_required: whether one must be typed.
    """

    default: tuple[T, ...] = ()
    group: Group = "Selection"
    reads: click.ParamType[T]
    is_required: bool = True

    @property
    def key(self) -> str:
        """Keep clear of the options."""
        return f"arguments_{self.flag.lower()}"

    def argv(self, value: tuple[T, ...]) -> list[str]:
        """Return the words."""
        return [str(each) for each in value]


class Request(msgspec.Struct, frozen=True):
    """What a command line asks for: the value of each option it may hold.

    Attributes:
        values: of every option, typed or not.
        typed: options whose value was typed; it isn't the default nor from the environment.
        of_project: those of them that stand in a project's file, as for any of its runs.
    """

    values: Mapping[Option[Any], object]
    typed: frozenset[Option[Any]] = frozenset()
    of_project: frozenset[Option[Any]] = frozenset()

    def __getitem__(self, option: Option[T]) -> T:
        """Return an option's value.

        Raises:
            KeyError: the command has no such option.
        """
        return cast("T", self.values[option])

    def __contains__(self, option: Option[Any]) -> bool:
        """Return whether the command has such an option."""
        return option in self.values

    def __iter__(self) -> Iterator[Option[Any]]:
        """Go over the options of the command."""
        return iter(self.values)

    def is_set(self, option: Option[Any]) -> bool:
        """Return whether the command has such an option, and its value isn't the default."""
        return option in self.values and self.values[option] != option.default

    def but(self, option: Option[T], value: T) -> Request:
        """Return the same request with another value of an option."""
        return msgspec.structs.replace(self, values={**self.values, option: value})

    def with_defaults(self, options: Sequence[Option[Any]]) -> Request:
        """Return the same request with the defaults of options that it lacks."""
        return msgspec.structs.replace(self, values={**defaults(options).values, **self.values})

    def argv(self, options: Sequence[Option[Any]]) -> list[str]:
        """Return the arguments that ask for the same of some options."""
        return [word for each in options if self.is_set(each) for word in each.argv(self[each])]


def defaults(options: Sequence[Option[Any]]) -> Request:
    """Return what an empty command line asks for."""
    return Request({option: option.default for option in options})


class Member(click.ParamType[E]):
    """One of an enumeration, typed as its value."""

    name = "choice"

    def __init__(self, kind: type[E]) -> None:
        """Take the enumeration."""
        self.kind = kind
        self._choice = click.Choice([each.value for each in kind])

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """List what can be typed."""
        del param, ctx
        return f"[{'|'.join(each.value for each in self.kind)}]"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete what has been typed of it."""
        return self._choice.shell_complete(ctx, param, incomplete)

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> E:
        """Read the word."""
        return self.kind(self._choice.convert(str(value), param, ctx))


class Within(click.FloatRange):
    """A number of a range, which is finite."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is no finite number.", param, ctx)
        return number


class DeviceType(click.ParamType[str]):
    """The type of a device, such as `cuda`; never one of several devices, such as `cuda:1`."""

    name = "type"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Read the word."""
        if not re.fullmatch(r"[a-z][a-z0-9_]*", str(value)):
            hint = "; CUDA_VISIBLE_DEVICES chooses one of several cards" * (":" in str(value))
            self.fail(f"{value!r} is no type of device, such as cpu, cuda or xpu{hint}", param, ctx)
        return str(value)


class ByteSize(click.ParamType[int]):
    """A number of bytes, such as `800M`, `12G` or `12GiB`; units are powers of 1024."""

    name = "size"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Read the word."""
        found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:iB|B)?", str(value), re.IGNORECASE)
        if found is None:
            self.fail(f"{value!r} is not a size such as 800M or 12G", param, ctx)
        size = float(found[1]) * _UNITS[found[2].upper()]
        if not 1 <= size < _MOST_BYTES:
            self.fail(f"{value!r} is not from 1 byte to less than {_MOST_BYTES >> 40}T", param, ctx)
        return int(size)


_MOST_BYTES = 2**63
"""That the kernel can count."""
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
