"""The worker's half: a class is built and called with one guess after another until it runs."""

from __future__ import annotations

import importlib
import inspect
import random
import re
import sys
import time
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from torch import nn

from dynamometer.common.interfaces.outcome import SkippedError, error_text
from dynamometer.common.interfaces.suite import LoadedModel
from dynamometer.models.parity.offered import _mock_config
from dynamometer.models.parity.roots import forget_others, is_from
from dynamometer.models.parity.source.arguments import (
    NO_HINTS,
    SHAPES,
    SIZE,
    Arguments,
    Hints,
    Parameter,
    calls_in,
    combinations,
    examples_of,
    guesses_of,
    inputs_by_name,
    inputs_in,
    sizes_in,
    tensor,
    words_in,
)
from dynamometer.models.parity.source.signatures import any_number_of, needed_by
from dynamometer.results.values.parity import (
    NO_FORWARD,
    NOT_A_MODULE,
    NOT_BUILT,
    NOT_IMPORTED,
    NOT_RUN,
    CorpusEntry,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import ModuleType

    from dynamometer.models.parity.source.discovery import FoundClass

T = TypeVar("T")
_FAULTS = (Exception, SystemExit)
"""What a project's code may raise: a program that parses arguments ends so."""
_MOST_TRIALS = 200
_MOST_S = 15.0
"""Of the constructor's search, and of forward's with the likeliest of what was built."""
_MOST_S_OF_OTHERS = 5.0
"""Of forward's search with what else was built: together less than a worker's usual time."""
_FURTHER = 4
"""Combinations of inputs beside those that change one, and shapes that an error leads to."""
_MOST_HINTS = 4
_MODULES_TRIED = 3
"""Built modules that inputs are looked for, of different arguments."""
_NAMES = {"torch": torch, "nn": nn, "_mock_config": _mock_config}


def load(found: FoundClass, tell: Callable[[str], None] = lambda _: None) -> LoadedModel:
    """Find arguments that a class runs with in eager, and make it with those.

    Args:
        found: the class.
        tell: is told before each stage how the reason would begin if it were the last; nothing at
            the end.

    Raises:
        SkippedError: it can't be imported or built, or no inputs were found; says the first error
            of the stage that was reached. Or it is no module.
    """
    if found.fault is not None:
        raise SkippedError(found.fault)
    tell(NOT_IMPORTED)
    try:
        kind = _imported(found)
    except _FAULTS as error:
        raise _skipped(NOT_IMPORTED, error) from error
    if not (isinstance(kind, type) and issubclass(kind, nn.Module)):
        raise SkippedError(NOT_A_MODULE)
    if getattr(kind, "forward", nn.Module.forward) is nn.Module.forward:
        raise SkippedError(NO_FORWARD)
    tell(NOT_BUILT)
    search = _Search(found, kind, tell)
    with _unchanged_random_state():
        init_args, forward_args = search.arguments()
    made = search.built(init_args)
    args, kwargs = _values(forward_args)
    tell("")
    return LoadedModel(
        module=made,
        args=tuple(args),
        kwargs=kwargs,
        entry=CorpusEntry(
            project=found.project,
            module=found.module,
            class_name=found.class_name,
            init_args=init_args.text,
            forward_args=forward_args.text,
            root=found.root,
            beside=found.beside,
        ),
    )


def _imported(found: FoundClass) -> object:
    """Import what a class seems to be, from where it was found.

    Raises:
        ImportError: the name of its module is that of another one, which can't be replaced.
    """
    sys.argv[:] = [found.file]
    if found.root is not None:
        forget_others(Path(found.root))
        sys.path.insert(0, found.root)
    if found.beside is not None:
        sys.path.append(found.beside)
    module = importlib.import_module(found.module)
    if found.root is not None and not is_from(module, Path(found.root)):
        msg = f"{found.module} is another one here, not that of {found.root}: rename it"
        raise ImportError(msg, name=found.module)
    return getattr(module, found.class_name)


class _Failures:
    """What wrong guesses led to: the first error is told, and all lead to further guesses."""

    def __init__(self) -> None:
        self._first: dict[str, BaseException] = {}
        self._words: list[str] = []
        self._sizes: list[int] = []

    def note(self, stage: str, error: BaseException) -> None:
        self._first.setdefault(stage, error)
        text = error_text(error)
        self._words += words_in(text)
        self._sizes += sizes_in(text) if stage == NOT_BUILT else []

    @property
    def hints(self) -> Hints:
        """What the errors speak of, the most frequent first."""
        return Hints(_most_frequent(self._words), _most_frequent(self._sizes))

    def told(self) -> SkippedError:
        """Return the first error of the stage that was reached last."""
        stage = next((each for each in (NOT_RUN, NOT_BUILT) if each in self._first), NOT_BUILT)
        return _skipped(stage, self._first.get(stage, TypeError("nothing could be tried")))


def _most_frequent(found: list[T]) -> list[T]:
    return [each for each, _ in Counter(found).most_common(_MOST_HINTS)]


@dataclass(frozen=True)
class _Search:
    found: FoundClass
    kind: type[nn.Module]
    tell: Callable[[str], None]

    def arguments(self) -> tuple[Arguments, Arguments]:
        """Return those of the constructor and of forward.

        Raises:
            SkippedError: nothing runs; says the first error.
        """
        failures = _Failures()
        for _ in range(2):  # the second time with what errors asked for
            hints = failures.hints
            most_s = _MOST_S
            for init_args, made in islice(self._modules(hints, failures), _MODULES_TRIED):
                self.tell(NOT_RUN)
                forward_args = self._inputs_for(made, failures, most_s)
                most_s = _MOST_S_OF_OTHERS
                if forward_args is not None:
                    return init_args, forward_args
            if failures.hints == NO_HINTS:
                break
        raise failures.told()

    def built(self, arguments: Arguments) -> nn.Module:
        args, kwargs = _values(arguments)
        return self.kind(*args, **kwargs).eval()

    def _modules(self, hints: Hints, failures: _Failures) -> Iterator[tuple[Arguments, nn.Module]]:
        """Build it with one guess after another."""
        left_s = _MOST_S  # without what whoever asks does with one
        for arguments in _different(self._constructions(hints)):
            started = time.monotonic()
            try:
                made = self.built(arguments)
            except _FAULTS as error:  # whatever a wrong guess leads to
                failures.note(NOT_BUILT, error)
                made = None
            left_s -= time.monotonic() - started
            if made is not None:
                yield arguments, made
            if left_s < 0:
                return

    def _constructions(self, hints: Hints) -> Iterator[Arguments]:
        needed = needed_by(self.kind.__init__)
        if not needed:
            yield Arguments()
        source = _text_of(sys.modules[self.found.module])
        examples = examples_of(inspect.getdoc(self.kind) or "")
        yield from calls_in(examples, self.found.class_name)
        yield from calls_in(source, self.found.class_name)
        yield from _combined(needed, [guesses_of(each, hints) for each in needed])

    def _inputs_for(self, made: nn.Module, failures: _Failures, most_s: float) -> Arguments | None:
        """Return inputs that it runs with, if any are found."""
        needed = needed_by(made.forward) or any_number_of(made.forward)
        examples = inputs_in(examples_of(inspect.getdoc(self.kind) or ""))
        queue = [*examples, *_fitting(made), *map(tensor, SHAPES)]
        tried: set[str] = set()
        ends_at = time.monotonic() + most_s
        while queue and len(tried) < _MOST_TRIALS and time.monotonic() < ends_at:
            shape = queue.pop(0)
            if shape in tried:
                continue
            tried.add(shape)
            choices = [[*inputs_by_name(each), shape] for each in needed]
            for arguments in islice(_combined(needed, choices), len(needed) + _FURTHER):
                if time.monotonic() > ends_at:
                    break
                error = _error_of(made, arguments)
                if error is None:
                    return arguments
                failures.note(NOT_RUN, error)
                queue[:0] = [each for each in _mended(shape, error) if each not in tried]
            if not needed:
                break
        return None


def _error_of(made: nn.Module, arguments: Arguments) -> BaseException | None:
    try:
        args, kwargs = _values(arguments)
        with torch.no_grad():
            made(*args, **kwargs)
    except _FAULTS as error:  # whatever a wrong guess leads to
        return error
    return None


def _fitting(made: nn.Module) -> Iterator[str]:
    """Return what the first layers that know the size of their input take."""
    known = (inputs for each in made.modules() if (inputs := _takes(each)) is not None)
    for inputs in islice(known, 2):
        yield from inputs


def _takes(layer: nn.Module) -> list[str] | None:
    """Return inputs that one of torch's layers takes; one derived from it may lack its sizes."""
    for kinds, inputs in _LAYERS:
        if isinstance(layer, kinds):
            with suppress(Exception):
                return inputs(layer)
    return None


_LAYERS: tuple[tuple[Any, Callable[[Any], list[str]]], ...] = (
    (nn.Conv1d, lambda own: [tensor(f"4, {own.in_channels}, {size}") for size in (SIZE, 256)]),
    (nn.Conv2d, lambda own: [
        tensor(f"2, {own.in_channels}, {size}, {size}") for size in (SIZE, 64, 224)
    ]),
    (nn.Conv3d, lambda own: [
        tensor(f"2, {own.in_channels}, {size}, {size}, {size}") for size in (8, SIZE)
    ]),
    (nn.BatchNorm1d, lambda own: [
        tensor(f"4, {own.num_features}"), tensor(f"4, {own.num_features}, {SIZE}")
    ]),
    ((nn.BatchNorm2d, nn.InstanceNorm2d), lambda own: [
        tensor(f"4, {own.num_features}, {SIZE}, {SIZE}")
    ]),
    (nn.GroupNorm, lambda own: [tensor(f"4, {own.num_channels}, {SIZE}, {SIZE}")]),
    (nn.LayerNorm, lambda own: [
        tensor(", ".join(map(str, (*head, *own.normalized_shape)))) for head in ((4, 8), (4,))
    ]),
    (nn.Embedding, lambda own: [f"torch.randint(0, {own.num_embeddings}, [4, 8])"]),
    (nn.RNNBase, lambda own: [tensor(f"4, 8, {own.input_size}")]),
    (nn.MultiheadAttention, lambda own: [tensor(f"4, 8, {own.embed_dim}")]),
    (nn.Linear, lambda own: [
        tensor(f"{head}, {own.in_features}") for head in ("4, 8", "4", "4, 8, 8")
    ]),
)  # fmt: skip
"""What each layer takes, by its own sizes."""


def _mended(shape: str, error: BaseException) -> list[str]:
    """Return the same input as an error asks for it: in a container, or of a size it speaks of."""
    text = error_text(error)
    for pattern, form in _CONTAINERS:
        if re.search(pattern, text):
            return [form.format(shape)]
    written = _OF_SIZES.fullmatch(shape)
    if written is None:  # or an example's, which says more than sizes
        return []
    sizes = [int(each) for each in written[1].split(",")]
    places = sorted({len(sizes) - 1, min(1, len(sizes) - 1)})  # channels come second, or last
    return [
        tensor(", ".join(map(str, [*sizes[:place], size, *sizes[place + 1 :]])))
        for size in sizes_in(text)
        for place in places
        if sizes[place] != size
    ][:_FURTHER]


_OF_SIZES = re.compile(r"torch\.rand\(\[(\d+(?:, \d+)*)\]\)")
_CONTAINERS = (
    (r"'Tensor' object has no attribute '(keys|items)'|values expected sparse",
     "{{'0': {0}, '1': {0}}}"),
    (r"'Tensor' object has no attribute 'append'", "[{0}, {0}]"),
)  # fmt: skip


def _combined(needed: list[Parameter], choices: list[list[str]]) -> Iterator[Arguments]:
    for which in combinations(choices):
        texts = [own[index] for own, index in zip(choices, which, strict=True)]
        pairs = [*zip(needed, texts, strict=True)]
        yield Arguments(
            tuple(text for each, text in pairs if each.is_positional),
            {each.name: text for each, text in pairs if not each.is_positional},
        )


def _values(arguments: Arguments) -> tuple[list[Any], dict[str, Any]]:
    args, kwargs = eval(arguments.text, dict(_NAMES))  # noqa: S307  the text is a guess of ours, or the project's own, which runs here anyway
    return args, kwargs


def _different(candidates: Iterable[Arguments]) -> Iterator[Arguments]:
    """Give no text twice, and no more than so many."""
    tried = set[str]()
    for each in candidates:
        if each.text not in tried:
            tried.add(each.text)
            yield each
        if len(tried) >= _MOST_TRIALS:
            return


def _text_of(module: ModuleType) -> str:
    try:
        return inspect.getsource(module)
    except (OSError, TypeError):
        return ""


def _skipped(stage: str, error: BaseException) -> SkippedError:
    """Say of an error how far a class came."""
    text = " ".join(error_text(error).split())
    return SkippedError(f"{stage}: {type(error).__name__}: {text}")


@contextmanager
def _unchanged_random_state() -> Iterator[None]:
    """Leave generators as they are, so that weights don't depend on how many guesses there were."""
    numbers, state = random.getstate(), torch.get_rng_state()
    own = np.random.get_state()  # noqa: NPY002  models draw from the legacy generator
    try:
        yield
    finally:
        random.setstate(numbers)
        torch.set_rng_state(state)
        np.random.set_state(own)  # noqa: NPY002  likewise
