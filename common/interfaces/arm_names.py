"""Names of arms: a backend with what is set of it, `inductor:freezing,max-autotune`.

An arm is called so in records, tables, files and the command that repeats a case. Options stand in
alphabetical order, settings are spelled in one way: what is the same is called the same.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from dynamometer.common import registry
from dynamometer.common.errors import UnknownNameError, UsageError
from dynamometer.dynamo.backends.declared import Declared

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynamometer.dynamo.backends.declared import BackendOption


_WORDS = re.compile(r"""(?:'[^']*'|"[^"]*"|\[[^]]*\]|\([^)]*\)|\{[^}]*\}|[^,])+""")
"""What stands between commas; those in quotes or brackets are of a value."""


class ArmName(msgspec.Struct, frozen=True):
    """A backend and the options that are typed with it.

    Attributes:
        backend: its name, or `module:attribute`.
        options: each with its value; `None` for a word.
    """

    backend: str
    options: tuple[tuple[str, str | None], ...] = ()

    def __str__(self) -> str:
        """Return the arm's name."""
        words = sorted(map(_word, self.options))
        return f"{self.backend}:{','.join(words)}" if words else self.backend


def _word(option: tuple[str, str | None]) -> str:
    name, value = option
    return name if value is None else f"{name}={value}"


def _option(word: str) -> tuple[str, str | None]:
    name, equals, value = word.partition("=")
    return name.strip(), value.strip() if equals else None


def read(text: str) -> ArmName:
    """Read a name; what follows a backend's name are its options, any other is `module:attribute`.

    Raises:
        UsageError: nothing follows the colon.
    """
    backend, colon, rest = text.partition(":")
    if not colon or not registry.is_backend(backend):
        return ArmName(text)
    words = _WORDS.findall(rest)
    options = tuple(dict.fromkeys(map(_option, words)))
    if not words or ",".join(words) != rest or any(not name for name, _ in options):
        msg = f"backend {text!r}: give NAME:OPTION,OPTION, such as inductor:max-autotune,freezing"
        raise UsageError(msg)
    return ArmName(backend, options)


def declared(backend: str) -> Declared | None:
    """Return what a backend says of itself; `None` for a callable of a user's, which says nothing.

    Imports the module that declares it, which for ours imports no torch.

    Raises:
        UsageError: it can't be imported.
        UnknownNameError: there is no such backend.
    """
    found = registry.resolve("backends", backend)
    return found if isinstance(found, Declared) else None


def settings_of(arm: ArmName) -> dict[str, Any]:
    """Return what the options of an arm set.

    Raises:
        UsageError: they contradict each other, or a value is not one that can be set.
        UnknownNameError: the backend has no such option; says which come near.
    """
    chosen = _chosen(arm)
    for each in chosen:
        for other in chosen:
            if each.contradicts(other):
                raise UsageError(_contradiction(arm, each, other))
    return {key: value for each in chosen for key, value in each.sets.items()}


def of_families(arm: ArmName) -> dict[str, Any]:
    """Return what is set by settings' own names, of which a backend has any number.

    Raises:
        UsageError: a value is not one that can be set.
        UnknownNameError: the backend has no such option.
    """
    chosen = [each for each in _chosen(arm) if each.option.family is not None]
    return {key: value for each in chosen for key, value in each.sets.items()}


def canonical(arm: ArmName) -> ArmName:
    """Return the arm with its settings spelled in one way, so that the same is called the same.

    A setting that has a word is called by it; a value is spelled as Python does. What other options
    set as well is left out, and what our compilers do anyway.

    Raises:
        UsageError: as `settings_of` does.
    """
    settings_of(arm)
    found = declared(arm.backend) if arm.options else None
    if found is None:
        return arm
    chosen = _chosen(arm)
    order = [each.name for each in found.options]
    kept = list(chosen)
    for each in sorted(chosen, key=lambda one: order.index(one.option.name), reverse=True):
        others = {key: value for one in kept if one != each for key, value in one.comes_to.items()}
        is_said = each.comes_to.items() <= others.items()
        # What torch sets by itself is another thing under another torch: it stays in the name.
        is_so = each.option.family is None and all(
            found.default(key) == (value,) and key not in others
            for key, value in each.comes_to.items()
        )
        if is_said or is_so:
            kept.remove(each)
    return ArmName(arm.backend, tuple(each.typed for each in chosen if each in kept))


class _Chosen(msgspec.Struct, frozen=True):
    """An option as it is chosen.

    Attributes:
        word: as it was typed.
        option: that it is; of a setting that has a word, the word's.
        typed: its name and its value, spelled in one way.
        sets: settings of the compiler.
        comes_to: the same where one that stands for others is resolved.
    """

    word: str
    option: Any
    typed: tuple[str, str | None]
    sets: dict[str, Any]
    comes_to: dict[str, Any]

    def contradicts(self, other: _Chosen) -> bool:
        """Return whether both can't be meant."""
        if other.option.name in self.option.excludes:
            return True
        names = {self.option.name, other.option.name}
        if names & {*self.option.overrides, *other.option.overrides}:
            return False
        theirs = other.comes_to
        return any(value != theirs.get(key, value) for key, value in self.comes_to.items())


def _chosen(arm: ArmName) -> list[_Chosen]:
    """Return the options of an arm, each once.

    Raises:
        UsageError: a value is not one that can be set.
        UnknownNameError: the backend has no such option.
    """
    options = _options_of(arm.backend) if arm.options else ()
    found: dict[tuple[str, str | None], _Chosen] = {}
    for name, value in arm.options:
        option = _known(arm.backend, name)
        _check_value(arm, option, name, value)
        sets = option.settings(name, value)
        typed = (name, value)
        if option.family is not None:
            ((key, setting),) = sets.items()
            typed = (name, _spelled(option, name, setting))
            words = [each for each in options if each.sets == {key: setting}]
            if words:
                option, typed = words[0], (words[0].name, None)
        comes_to = option.resolved(*typed)
        found.setdefault(typed, _Chosen(_word((name, value)), option, typed, sets, comes_to))
    return list(found.values())


def _spelled(option: Any, name: str, value: Any) -> str:
    """Spell the value of a setting as Python does, a text without quotes it can do without."""
    if not isinstance(value, str) or "," in value or not _WORDS.fullmatch(value):
        return repr(value)
    # 'None' and '1' would be read as something else than texts.
    (read,) = option.settings(name, value).values()
    return value if read == value and isinstance(read, str) else repr(value)


def training_refusal(arm: ArmName) -> str | None:
    """Return which option of an arm is for inference alone, in a sentence.

    Its setting may be typed by its own name as well.

    Raises:
        UsageError: as `settings_of` does.
    """
    settings = settings_of(arm)
    for each in _options_of(arm.backend) if settings else ():
        if not each.trains and each.sets.items() <= settings.items():
            return f"{arm}: {each.name} is for inference; leave it out, or --training"
    return None


def with_config(arms: Sequence[ArmName], texts: Sequence[str]) -> list[ArmName]:
    """Give options to every backend that has such.

    A setting of Inductor may be typed by its name alone, as PyTorch's harness has it. What only
    leaves something out, such as `no-cudagraphs`, is done where no backend does that.

    Args:
        arms: as they were named.
        texts: each `KEY` or `KEY=VALUE`.

    Raises:
        UsageError: no backend has one.
    """
    found = list(arms)
    for text in texts:
        option = _quoted(_option(text))
        taken = [_with(arm, option) for arm in found]
        is_taken = taken != found or any(option in arm.options for arm in found)
        if not is_taken and not _leaves_out(text):
            raise _no_such_option(found, text)
        found = taken
    return found


def _quoted(option: tuple[str, str | None]) -> tuple[str, str | None]:
    """Quote a value with a comma that would be taken for the end of it in an arm's name."""
    name, value = option
    if value is None or "," not in value or _WORDS.fullmatch(value):
        return option
    return name, repr(value)


def _leaves_out(text: str) -> bool:
    """Return whether a text is an option of some backend to leave something out."""
    if not text.startswith("no-"):
        return False
    for name in registry.choices("backends"):
        with suppress(UsageError):  # one of a plugin can't be had, which nobody asked for
            if _find(_options_of(name), text):
                return True
    return False


def _no_such_option(arms: Sequence[ArmName], text: str) -> UsageError:
    backends = ", ".join(dict.fromkeys(arm.backend for arm in arms))
    known = {each.name for arm in arms for each in _options_of(arm.backend) if not each.family}
    if not known:
        return UsageError(f"-c {text}: {backends} has no options; leave it out")
    hint = f"It was looked for among the options of {backends}."
    return UnknownNameError("option", _option(text)[0], known, hint)


def _with(arm: ArmName, option: tuple[str, str | None]) -> ArmName:
    name, value = option
    options = _options_of(arm.backend)
    if _find(options, name):
        return ArmName(arm.backend, tuple(dict.fromkeys((*arm.options, option))))
    for each in options:
        if each.family and value is not None and name in each.family():
            own = (f"{each.name}{name}", value)
            return ArmName(arm.backend, tuple(dict.fromkeys((*arm.options, own))))
    return arm


def _options_of(backend: str) -> tuple[BackendOption, ...]:
    found = declared(backend)
    return found.options if found else ()


def _find(options: Sequence[BackendOption], name: str) -> BackendOption | None:
    """Return the option of a name, or the family that the name is of."""
    for each in options:
        if each.family is None:
            if each.name == name:
                return each
        elif name.startswith(each.name):
            keys = each.family()
            if not keys or name.removeprefix(each.name) in keys:
                return each
    return None


def _known(backend: str, name: str) -> BackendOption:
    options = _options_of(backend)
    found = _find(options, name)
    if found is not None:
        return found
    names = {each.name for each in options if each.family is None}
    for each in options:
        if each.family and name.startswith(each.name):
            names = {f"{each.name}{key}" for key in each.family()}
    if not names:
        msg = f"backend {backend!r} has no options, and {name!r} was given to it"
        raise UsageError(msg)
    hint = f"`dynamometer ls backends --long` shows all of {backend}."
    raise UnknownNameError("option", name, names, hint)  # noqa: EM101  what kind of name it is, no message


def _check_value(arm: ArmName, option: BackendOption, name: str, value: str | None) -> None:
    if option.takes_value == (value is None):
        verb = f"needs a value: {option.form}" if option.takes_value else "takes no value"
        msg = f"backend {arm.backend}: {name} {verb}"
        raise UsageError(msg)
    if option.values and value not in option.values:
        msg = f"backend {arm.backend}: {name} is one of {', '.join(option.values)}, not {value!r}"
        raise UsageError(msg)
    try:
        option.settings(name, value)
    except ValueError as error:
        msg = f"backend {arm.backend}: {name} is {error}, not {value!r}"
        raise UsageError(msg) from error


def _contradiction(arm: ArmName, one: _Chosen, other: _Chosen) -> str:
    both = f"{one.word} and {other.word}"
    msg = f"backend {arm}: {both} contradict each other; leave one out"
    family = next((each.name for each in _options_of(arm.backend) if each.family), None)
    for mode, setting in ((one, other), (other, one)):
        if family and setting.option.means is None and len(mode.comes_to) > 1:
            wanted = {**mode.comes_to, **setting.comes_to}
            words = ",".join(f"{family}{key}={value}" for key, value in wanted.items())
            msg += f", or give instead of both what is to be set: {words}"
    return msg
