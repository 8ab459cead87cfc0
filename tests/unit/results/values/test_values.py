from __future__ import annotations

import math

import factories
import msgspec
import pytest

from dynamometer.results.values.cases import Case, Mode, ModelSpec, Scale, Skip
from dynamometer.results.values.records import (
    SCHEMA_VERSION,
    Measurement,
    Record,
    StopReason,
    has_ended,
    unfinished,
)


@pytest.mark.parametrize(
    ("reason", "shown"),
    [("x" * 100, "x" * 100), ("x" * 101, "x" * 97 + "..."), ("one\n two", "one two")],
)
def test_a_reason_that_goes_on_says_so(reason: str, shown: str) -> None:
    """A number may be missing at the end of what a line holds."""
    assert factories.failure(reason=reason).line == f"FAIL (compile) {shown}"


@pytest.mark.parametrize("sample", [math.nan, math.inf, -math.inf])
def test_measurement_rejects_what_is_not_finite(sample: float) -> None:
    """A sample that JSON can't hold is refused where it is made, and the arm is named."""
    with pytest.raises(ValueError, match="latency of inductor holds a sample that is not finite"):
        factories.measurement(arm="inductor", samples=(1.0, sample))


def test_measurement_rejects_blocks_that_do_not_match() -> None:
    """Each sample has one block, or none has."""
    with pytest.raises(ValueError, match="one block per sample"):
        factories.measurement(samples=(1.0, 2.0), blocks=(0,))


def test_measurement_is_checked_when_decoded() -> None:
    """What is read back is held to the same rules as what is made."""
    text = b'{"metric":"m","unit":"s","arm":"a","samples":[1,2],"blocks":[0]}'
    with pytest.raises(msgspec.ValidationError, match="one block per sample"):
        msgspec.json.decode(text, type=Measurement)


def test_unknown_fields_are_refused() -> None:
    """A record of another format is not read as one of this."""
    row = msgspec.json.decode(msgspec.json.encode(factories.record())) | {"surprise": 1}
    with pytest.raises(msgspec.ValidationError, match="surprise"):
        msgspec.json.decode(msgspec.json.encode(row), type=Record)


def test_values_are_frozen() -> None:
    """A case is never changed by what becomes of it."""
    with pytest.raises(AttributeError):
        factories.case().model = "other"  # type: ignore[misc]  # is to fail


def test_records_and_manifests_carry_the_schema_version() -> None:
    """Every file says of which format it is."""
    for value in (factories.record(), factories.manifest()):
        assert msgspec.json.decode(msgspec.json.encode(value))["schema"] == SCHEMA_VERSION


@pytest.mark.parametrize(
    ("stopped", "ended"),
    [
        ([], False),
        ([None], False),
        ([None, None], False),
        ([StopReason.FAILED], True),
        ([None, StopReason.TARGET], True),
        ([None] * 5, True),
    ],
)
def test_when_a_case_has_ended(stopped: list[StopReason | None], *, ended: bool) -> None:
    """Where its last record says that it is that, or it has had as many as it may.

    Unless another attempt may be due, before which nothing is marked.
    """
    records = [factories.record(replicate=n, stopped=why) for n, why in enumerate(stopped)]
    assert has_ended(records, factories.plan(replicates=5)) is ended
    retried = factories.plan(replicates=5, retries_for=("crash",))
    assert has_ended(records, retried) is (ended and any(stopped))


def test_which_cases_of_a_run_have_not_ended() -> None:
    """Those without a record, and those of which some replicates are to come."""
    plan = factories.plan(*map(factories.model_spec, ("a", "b", "c")), replicates=2)
    whole, begun, _ = plan.cases
    records = [factories.record(whole), factories.record(begun)]
    assert [each.model for each in unfinished(plan, records)] == ["a", "b", "c"]
    records.append(factories.record(whole, replicate=1))
    assert [each.model for each in unfinished(plan, records)] == ["b", "c"]


def test_case_id_of_a_known_case() -> None:
    """The id is text that reads as the case, stable from run to run."""
    assert factories.case().id == (
        "torchbench/alexnet/inference/cpu/float32/static/full/b4/baseline+inductor"
    )


@pytest.mark.parametrize(
    "change",
    [
        {"suite": "timm"},
        {"model": "vgg16"},
        {"arms": ("baseline", "eager")},
        {"arms": ("inductor", "baseline")},
        {"mode": Mode.TRAINING},
        {"device": "cuda"},
        {"dtype": "float16"},
        {"channels_last": True},
        {"matmul_precision": "high"},
        {"compiled_optimizer": True},
        {"nopython": True},
        {"dynamic": True},
        {"scale": Scale.TINY},
        {"batch_size": 5},
        {"batch_size": None},
    ],
    ids=str,
)
def test_case_ids_differ_in_every_field(change: dict[str, object]) -> None:
    """No field is left out of the id."""
    assert factories.case(**change).id != factories.case().id  # type: ignore[arg-type]  # untyped


def test_case_ids_are_tried_in_every_field() -> None:
    """The test above misses no field that is added later."""
    assert set(Case.__struct_fields__) == {
        "suite", "model", "arms", "mode", "device", "dtype", "channels_last",
        "compiled_optimizer", "dynamic", "nopython", "scale", "batch_size", "dynamic_dims",
        "overrides", "matmul_precision",
    }  # fmt: skip


@pytest.fixture
def scaled() -> ModelSpec:
    """A model with something of its own at each scale."""
    return factories.model_spec(
        options={"depth": 12, "width": 768},
        cpu={"width": 512},
        small={"depth": 4},
        tiny={"depth": 1, "width": 8, "batch_size": 2},
    )


@pytest.mark.parametrize(
    ("scale", "device", "options"),
    [
        (Scale.FULL, "cuda", {"depth": 12, "width": 768}),
        (Scale.FULL, "cpu", {"depth": 12, "width": 512}),
        (Scale.SMALL, "cpu", {"depth": 4, "width": 768}),
        (Scale.SMALL, "cuda", {"depth": 4, "width": 768}),
        (Scale.TINY, "cpu", {"depth": 1, "width": 8}),
    ],
)
def test_options_of_a_scale(
    scaled: ModelSpec, scale: Scale, device: str, options: dict[str, int]
) -> None:
    """A scale replaces what it names and keeps the rest; the batch size is no option."""
    assert scaled.options_at(scale, device) == options


def test_options_of_a_scale_leave_the_spec_alone(scaled: ModelSpec) -> None:
    """Merging doesn't write into the tables."""
    scaled.options_at(Scale.TINY, "cpu")["depth"] = 99
    assert scaled.options_at(Scale.TINY, "cpu")["depth"] == 1
    assert scaled.tiny["batch_size"] == 2


@pytest.mark.parametrize(
    ("scale", "device", "size"),
    [
        (Scale.FULL, "cpu", 4),
        (Scale.FULL, "cuda", 64),
        (Scale.FULL, "xpu", 64),
        (Scale.SMALL, "cuda", 64),
        (Scale.TINY, "cpu", 2),
        (Scale.TINY, "cuda", 2),
    ],
)
def test_batch_size_of_a_scale(scaled: ModelSpec, scale: Scale, device: str, size: int) -> None:
    """The scale's batch size wins, then the device's, then the CPU's."""
    assert scaled.batch_size_at(scale, device) == size


def test_batch_size_is_absent_where_the_model_sets_its_own() -> None:
    """A table without batch sizes gives none rather than a number."""
    assert factories.model_spec(batch_size={}).batch_size_at(Scale.FULL, "cpu") is None


def test_skips_hold_on_their_devices() -> None:
    """A skip limited to a device says nothing of another; one without holds everywhere."""
    spec = factories.model_spec(
        skips=(Skip(reason="no kernel", devices=("cpu",)), Skip(reason="broken", devices=("xpu",)))
    )
    assert spec.skip_reason("cpu") == "no kernel"
    assert spec.skip_reason("xpu") == "broken"
    assert spec.skip_reason("cuda") is None
    assert factories.model_spec(skipped="gone").skip_reason("anything") == "gone"


def test_a_plan_finds_the_spec_of_a_case() -> None:
    """Cases and specs of a plan belong together by the model's name."""
    specs = (factories.model_spec("a"), factories.model_spec("b"))
    plan = factories.plan(*specs)
    assert [plan.spec_of(case) for case in plan.cases] == list(specs)


@pytest.mark.parametrize(
    ("published", "tiny", "trained"), [(16, 1, 2), (16, 4, 4), (1, 1, 1), (2, 1, 2)]
)
def test_training_does_not_shrink_a_batch_to_one(published: int, tiny: int, trained: int) -> None:
    """Batch normalisation needs two samples; a model of one graph stays at one."""
    spec = factories.model_spec(batch_size={"cpu": published}, tiny={"batch_size": tiny})
    assert spec.batch_size_at(Scale.TINY, "cpu", Mode.TRAINING) == trained
    assert spec.batch_size_at(Scale.TINY, "cpu") == tiny


def test_a_skip_may_be_of_one_mode() -> None:
    """Elsewhere the model is run, and so its packages are needed."""
    skips = (Skip(reason="no gradient", modes=(Mode.TRAINING,)),)
    spec = factories.model_spec(skips=skips)
    assert spec.skip_reason("cpu", Mode.TRAINING) == "no gradient"
    assert spec.skip_reason("cpu", Mode.INFERENCE) is None
    assert not spec.is_never_run
    assert factories.model_spec(skipped="gone").is_never_run
