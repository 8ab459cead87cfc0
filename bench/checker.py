#!/usr/bin/env python3
"""Spoil what eager computes in many ways, and count what the checker notices.

    python bench/checker.py --log checker.jsonl --output docs/checker.md
    python bench/checker.py --log checker.jsonl --right --output docs/checker.md

Models of the three suites at tiny scale, in both modes and three precisions. Each way to be wrong
is tried on each of them, one at a time, beside what PyTorch's own check makes of the very same
arm. With `--right`, arms that compute what eager does instead: none of them is to be accused.
Every result is appended to the log, and what stands there is not done again; so it can be stopped
at any time, or after `--limit-s` seconds. The page is made of the whole log.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import time
import warnings
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # this tree, whatever is installed
from checker_page import page
from spoiled_arm import SpoiledArm
from spoiled_cases import CaseToSpoil, build_reference, case_of, load, suite_of
from spoiling import SPOILINGS, Part, Target
from their_check import TheirCheck

from dynamometer.common.checking.checking import (
    Checks,
    check_after_timing,
    check_first_calls,
)
from dynamometer.common.checking.further import Further, check_further_calls
from dynamometer.common.checking.snapshots import Snapshot
from dynamometer.common.checking.steps import make_step
from dynamometer.common.errors import UnknownNameError
from dynamometer.common.interfaces.outcome import WrongResultError
from dynamometer.common.measuring.arm_backends import load_backend
from dynamometer.common.measuring.blame import TORCH_KERNELS
from dynamometer.dynamo import state
from dynamometer.results.values.cases import BASELINE, Case, Dtype, Mode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from spoiling import Spoiling

    from dynamometer.common.checking.reference import Reference
    from dynamometer.common.checking.steps import Step
    from dynamometer.common.interfaces.suite import LoadedModel
    from dynamometer.results.values.cases import ModelSpec

MODELS = {
    "torchbench": (
        "lennard_jones", "dcgan", "resnet18", "shufflenet_v2_x1_0", "basic_gnn_gcn", "nanogpt",
        "soft_actor_critic", "yolov3", "functorch_dp_cifar10",
    ),
    "huggingface": (
        "BertForMaskedLM", "GPT2ForSequenceClassification", "T5Small",
        "DebertaForQuestionAnswering", "SwinForImageClassification", "Wav2Vec2ForCTC",
        "MambaForCausalLM", "Llama_generate_static",
    ),
    "timm_models": (
        "mobilenetv2_100", "lcnet_050", "regnety_002", "levit_128", "vit_base_patch16_224",
        "mixer_b16_224", "convit_base", "rexnet_100",
    ),
}  # fmt: skip
"""Chosen for their variety: networks with normalisation and without, transformers, several outputs,
whole numbers in outputs, masked logits, buffers, random draws."""

ARMS = (BASELINE, "aot_eager", "inductor")
SEEDS = (0, 1, 2)
DTYPES = (Dtype.FLOAT32, Dtype.BFLOAT16, Dtype.AMP)
MUTATION, RIGHT, LEFT_OUT = "mutation", "right", "left out"
BEGUN, ENDED = "begun", "ended"
_MOST_DEATHS = 2


_KEY = ("what", "suite", "model", "mode", "dtype", "shapes", "seed", "spoiling", "arm")


class Log:
    """Results on disk, one on each line.

    Attributes:
        entries: what stands there.
    """

    def __init__(self, path: Path) -> None:
        """Read what is there; a last line that was cut off is left out."""
        self._path = path
        self._counts: Counter[tuple[Any, ...]] = Counter()
        self.entries: list[dict[str, Any]] = []
        text = path.read_text() if path.exists() else ""
        self._before_next = "\n" if text and not text.endswith("\n") else ""
        for line in text.splitlines():
            with suppress(json.JSONDecodeError):
                self._take(json.loads(line))

    def has(self, **key: Any) -> bool:
        """Return whether there is an entry of a key, those names that it lacks being absent."""
        return self._counts[_key_of(key)] > 0

    def add(self, **entry: Any) -> None:
        """Append an entry."""
        self._take(entry)
        with self._path.open("a") as file:
            file.write(f"{self._before_next}{json.dumps(entry)}\n")
        self._before_next = ""

    def begin(self, **key: Any) -> bool:
        """Note that a case is begun, and tell whether to: not if the process died of it twice."""
        begun, ended = (self._counts[_key_of({"what": what, **key})] for what in (BEGUN, ENDED))
        if begun - ended >= _MOST_DEATHS:
            self.add(what=LEFT_OUT, **key, reason="the process died of it, or was killed, twice")
            return False
        self.add(what=BEGUN, **key)
        return True

    def _take(self, entry: dict[str, Any]) -> None:
        self.entries.append(entry)
        self._counts[_key_of(entry)] += 1


def _key_of(entry: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(entry.get(name) for name in _KEY)


def main() -> int:
    """Do what isn't in the log, and write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", action="append", dest="models", metavar="SUITE/NAME")
    parser.add_argument("--all", action="store_true", help="every model of the three suites")
    parser.add_argument("--mode", action="append", choices=list(Mode), type=Mode)
    parser.add_argument("--dtype", action="append", choices=DTYPES, type=Dtype)
    parser.add_argument("--right", action="store_true", help="arms that are right")
    parser.add_argument("--arm", action="append", choices=ARMS)
    parser.add_argument("--seed", action="append", type=int)
    parser.add_argument("--shapes", action="append", choices=("static", "dynamic"))
    parser.add_argument("--log", type=Path, default=Path("checker.jsonl"))
    parser.add_argument("--limit-s", type=float, default=float("inf"))
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    try:
        _check_names(options.models or ())
    except UnknownNameError as error:
        parser.error(str(error))
    logging.getLogger("torch").setLevel(logging.CRITICAL)
    warnings.simplefilter("ignore")
    log = Log(options.log)
    _work(options, log)
    text = page(log.entries, SPOILINGS)
    if options.output:
        options.output.write_text(text)
    print(text)
    return 0


def _work(options: argparse.Namespace, log: Log) -> None:
    until = time.monotonic() + options.limit_s
    for spec, suite in _specs(options):
        for mode in options.mode or Mode:
            for dtype in options.dtype or DTYPES:
                if time.monotonic() > until:
                    print("out of time; call it again to go on", file=sys.stderr)
                    return
                if spec.skip_reason("cpu", mode):
                    continue
                if options.right:
                    _try_right_arms(options, spec, case_of(spec, suite, mode, dtype), log)
                else:
                    _spoil_case(spec, case_of(spec, suite, mode, dtype), log)


def _check_names(names: Sequence[str]) -> None:
    """Raise UnknownNameError if one is no model of the three suites."""
    known = [f"{suite}/{spec.name}" for suite in MODELS for spec in suite_of(suite).specs()]
    for name in names:
        if name not in known:
            kind = "model"
            raise UnknownNameError(kind, name, known)


def _specs(options: argparse.Namespace) -> Iterator[tuple[ModelSpec, str]]:
    names = options.models or [
        f"{suite}/{name}" for suite, listed in MODELS.items() for name in listed
    ]
    for suite in MODELS:
        for spec in suite_of(suite).specs():
            if options.all or f"{suite}/{spec.name}" in names:
                yield spec, suite


def _key(case: Case) -> dict[str, str]:
    return {
        "suite": case.suite,
        "model": case.model,
        "mode": str(case.mode),
        "dtype": str(case.dtype),
    }


def _spoil_case(spec: ModelSpec, case: Case, log: Log) -> None:
    """Try all spoilings of a case that aren't in the log."""
    key = _key(case)
    wanted = [
        each
        for each in SPOILINGS
        if case.mode in each.modes and case.dtype in each.dtypes
        and not log.has(what=MUTATION, spoiling=each.name, **key)
    ]  # fmt: skip
    if not wanted or log.has(what=LEFT_OUT, **key) or not log.begin(**key):
        return
    with state.running(case.mode, None):
        try:
            spoiled = _Spoiled.of(spec, case)
        except Exception as error:  # noqa: BLE001  models fail for many reasons; the page says so
            log.add(what=LEFT_OUT, **key, reason=_reason(error))
            return
        for spoiling in wanted:
            started = time.monotonic()
            found = spoiled.judge(spoiling)
            took_s = round(time.monotonic() - started, 2)
            log.add(what=MUTATION, **key, spoiling=spoiling.name, **found, seconds=took_s)
            _show(key, spoiling.name, found)
    log.add(what=ENDED, **key)


def _show(key: Mapping[str, str], name: str, found: Mapping[str, Any]) -> None:
    if found["counted"] and not found["ours"]:
        print("missed:", *key.values(), name, found["target"], file=sys.stderr, flush=True)
    if found.get("error"):
        print("failed:", *key.values(), name, found["error"], file=sys.stderr, flush=True)


@dataclass(frozen=True)
class _Spoiled:
    """A case with both checkers' references, which all its mutants share."""

    case: CaseToSpoil
    ours: Reference
    theirs: TheirCheck | None

    @classmethod
    def of(cls, spec: ModelSpec, case: Case) -> _Spoiled:
        """Build a case.

        Raises:
            Exception: it can't be built, or not be judged by ours.
        """
        seed = SEEDS[0]
        loaded = load(spec, case, seed)
        ours = build_reference(loaded, spec, case, seed)
        ours.make_runs()  # as a worker does for arms that don't compute with torch's kernels
        accused, _ = _accusation(_right_step(loaded, case, seed), ours)
        if accused:
            msg = f"eager itself is accused: {accused}"
            raise AssertionError(msg)
        theirs: TheirCheck | None = None
        with suppress(Exception):
            theirs = TheirCheck(case, loaded, seed)
            if not theirs.passes(_right_step(loaded, case, seed)):
                theirs = None
        return cls(CaseToSpoil.of(case, loaded, seed), ours, theirs)

    def judge(self, spoiling: Spoiling) -> dict[str, Any]:
        """Ask both checkers of one mutant; theirs is `None` if it accuses eager itself."""
        target = self.case.target(spoiling)
        if target is None:
            return {"counted": False, "ours": None, "theirs": None, "target": None}
        try:
            ours, checks = _accusation(self._step(spoiling, target), self.ours)
            theirs = None
            if self.theirs:
                theirs = not self.theirs.passes(self._step(spoiling, target))
        except Exception as error:  # noqa: BLE001  the spoiling itself may fail
            failed = {"counted": False, "ours": None, "theirs": None}
            return {**failed, "target": target.path, "error": _reason(error)}
        return {
            "counted": True,
            "ours": ours,
            "theirs": theirs,
            "target": target.path,
            "reservations": checks.reservations,
            "said": _is_loose(spoiling, target, checks),
        }

    def _step(self, spoiling: Spoiling, target: Target) -> Step:
        arm = SpoiledArm(self.case.loaded.copy(), spoiling, target)
        return arm.step(self.case.case.mode, self.case.seed)


def _right_step(loaded: LoadedModel, case: Case, seed: int) -> Step:
    own = loaded.copy()
    return make_step(own.module, own, case.mode, seed)


def _is_loose(spoiling: Spoiling, target: Target, checks: Checks) -> bool:
    """Return whether rounding hides smaller errors in what was spoiled; a loss changes all."""
    if spoiling.part is Part.LOSS:
        return bool(checks.loose)
    return any(path.endswith(target.path) for path in checks.loose)


def _accusation(step: Step, reference: Reference) -> tuple[str | None, Checks]:
    """Return what an arm is accused of, as a worker would, and of a pass what was compared."""
    start = Snapshot.of(step.loaded)
    try:
        checks = check_first_calls(step, start, reference)
        further = Further(calls=0, now=time.perf_counter)
        checks = check_further_calls(step, start, reference, checks, further)
        checks = check_after_timing(step, start, reference, checks)
    except WrongResultError as error:
        return str(error), Checks()
    return None, checks


def _try_right_arms(options: argparse.Namespace, spec: ModelSpec, case: Case, log: Log) -> None:
    """Try right arms of a case under several seeds, of one size and of several."""
    for shapes in options.shapes or ("static", "dynamic"):
        own = case_of(spec, case.suite, case.mode, case.dtype, dynamic=shapes == "dynamic")
        for seed in options.seed or SEEDS:
            key = {**_key(case), "shapes": shapes, "seed": seed}
            wanted = [arm for arm in options.arm or ARMS if not log.has(what=RIGHT, arm=arm, **key)]
            if not wanted or log.has(what=LEFT_OUT, **key) or not log.begin(**key):
                continue
            with state.running(case.mode, None, dynamic=own.dynamic):
                _try_arms(spec, own, wanted, key, log)
            log.add(what=ENDED, **key)


def _try_arms(
    spec: ModelSpec, case: Case, arms: list[str], key: Mapping[str, Any], log: Log
) -> None:
    try:
        loaded = load(spec, case, int(key["seed"]))
        reference = build_reference(loaded, spec, case, int(key["seed"]))
        if not TORCH_KERNELS.issuperset(arms):
            reference.make_runs()
    except Exception as error:  # noqa: BLE001  models fail for many reasons; the page says so
        log.add(what=LEFT_OUT, **key, reason=_reason(error))
        return
    for arm in arms:
        started = time.monotonic()
        found = _judge_right(arm, loaded, case, reference)
        took_s = round(time.monotonic() - started, 2)
        log.add(what=RIGHT, **key, arm=arm, **found, seconds=took_s)
        if found["accused"] or found["error"]:
            print(*key.values(), arm, found, file=sys.stderr, flush=True)


def _judge_right(
    name: str, loaded: LoadedModel, case: Case, reference: Reference
) -> dict[str, Any]:
    """Hold a backend's arm to eager's, and ask eager again behind it, as a worker does.

    What it raises is no accusation.
    """
    state.forget_compiled()
    own = loaded.copy()
    try:
        compiled = load_backend(name).compile(own.module, own.args, own.kwargs)
        step = make_step(compiled, own, case.mode, reference.settings.seed)
        accused, checks = _accusation(step, reference)
        if not accused:
            accused = reference.constancy.blame(name, asks=name not in TORCH_KERNELS)
    except Exception as error:  # noqa: BLE001  backends fail for many reasons
        return {"accused": None, "error": _reason(error)}
    return {"accused": accused, "error": None, "reservations": checks.reservations}


def _reason(error: Exception) -> str:
    first = str(error).strip().splitlines()
    return f"{type(error).__name__}: {first[0] if first else ''}"[:300]


if __name__ == "__main__":
    raise SystemExit(main())
