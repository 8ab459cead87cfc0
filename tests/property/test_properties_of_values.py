"""Every value survives its way through JSON, and ids tell cases apart."""

from __future__ import annotations

import contextlib

import msgspec
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from dynamometer.common.interfaces import messages
from dynamometer.results.values.cases import (
    Case,
    Dtype,
    DynamicDims,
    MatmulPrecision,
    Mode,
    ModelSpec,
    Overrides,
    Protocol,
    RunPlan,
    Scale,
    Skip,
    Value,
)
from dynamometer.results.values.choices import Choice, Subject, Tuning
from dynamometer.results.values.coverage import (
    CapturedGraph,
    Coverage,
    GraphBreak,
    Recompile,
    SkippedFrame,
)
from dynamometer.results.values.parity import CorpusEntry, FullGraph, Parity
from dynamometer.results.values.records import (
    NOTHING,
    Absence,
    ArmResult,
    BetweenProcessSd,
    BlockLoad,
    CaptureStats,
    Diagnosis,
    Environment,
    Estimate,
    Level,
    Load,
    Manifest,
    Measurement,
    Outcome,
    Ratio,
    Record,
    Stage,
    Status,
    StopReason,
    packed,
)
from dynamometer.results.values.sizes import SizeSweep, Specialization
from dynamometer.results.values.workers import Allocator, Caches, StartMethod

finite = st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
counts = st.integers(0, 2**53)
names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.:-]{0,5}", fullmatch=True)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | finite | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)
options = st.dictionaries(texts, json_values, max_size=2)
skips = st.builds(
    Skip, reason=texts, devices=st.lists(texts, max_size=2).map(tuple),
    modes=st.lists(st.sampled_from(Mode), max_size=2).map(tuple),
)  # fmt: skip
functions = st.lists(names, max_size=2).map(tuple)
overrides = st.builds(
    Overrides, allow_in_graph=functions, disable=functions,
    substitute=st.lists(st.tuples(names, names), max_size=2).map(tuple),
)  # fmt: skip
specs = st.builds(
    ModelSpec,
    suite=texts, name=texts, task=texts, origin=texts, build=texts,
    batch_size=st.dictionaries(texts, counts, max_size=2),
    options=options, cpu=options, small=options, tiny=options,
    varies=st.dictionaries(texts, counts, max_size=2),
    requires=st.lists(texts, max_size=2).map(tuple),
    aliases=st.lists(texts, max_size=2).map(tuple),
    tolerance=st.none() | finite,
    tolerance_reason=st.none() | texts,
    skips=st.lists(skips, max_size=2).map(tuple),
    quick=st.booleans(), overrides=overrides,
)  # fmt: skip
cases = st.builds(
    Case,
    suite=names, model=names,
    arms=st.lists(names, min_size=1, max_size=3).map(tuple),
    mode=st.sampled_from(Mode), device=st.sampled_from(["cpu", "cuda"]),
    dtype=st.sampled_from(Dtype), channels_last=st.booleans(),
    matmul_precision=st.sampled_from(MatmulPrecision),
    compiled_optimizer=st.booleans(), dynamic=st.booleans(), nopython=st.booleans(),
    dynamic_dims=st.sampled_from(DynamicDims), overrides=overrides,
    scale=st.sampled_from(Scale), batch_size=st.none() | st.integers(1, 4096),
)  # fmt: skip
outcomes = st.builds(
    Outcome,
    status=st.sampled_from(Status),
    stage=st.none() | st.sampled_from(Stage),
    reason=st.none() | texts,
    detail=st.none() | texts,
)


@st.composite
def measurements(draw: st.DrawFn) -> Measurement:
    """Draw samples with a block for each, or with none."""
    samples = draw(st.lists(finite, max_size=4))
    blocks = draw(st.just([]) | st.lists(counts, min_size=len(samples), max_size=len(samples)))
    return Measurement(
        metric=draw(texts), unit=draw(texts), arm=draw(texts),
        samples=tuple(samples), blocks=tuple(blocks),
    )  # fmt: skip


captures = st.builds(
    CaptureStats,
    frames=counts, frames_ok=counts, graphs=counts, ops=counts,
    breaks=st.dictionaries(texts, counts, max_size=2), recompiles=counts, guards=counts,
    guards_s=st.none() | finite, autograd_captures=st.none() | counts,
    autograd_compiles=st.none() | counts, cudagraph_skips=st.none() | counts, fallbacks=counts,
    fallback_reason=st.none() | texts, recompile_limit_hits=st.none() | counts,
)  # fmt: skip
choices = st.builds(
    Choice,
    subject=st.sampled_from(Subject), key=texts, arm=texts, is_decided=st.booleans(), count=counts,
    eager_s=st.none() | finite, chosen_s=st.none() | finite, tuning_s=finite,
)  # fmt: skip
tunings = st.builds(
    Tuning,
    decisions=texts, candidates=st.lists(texts, max_size=2).map(tuple), since=st.none() | texts,
    budget_s=finite,
)  # fmt: skip
arm_results = st.builds(
    ArmResult,
    arm=texts, outcome=outcomes, capture=st.none() | captures,
    max_error=st.none() | finite, steady=st.none() | st.booleans(),
    checked_calls=st.integers(0, 20), unchecked=st.lists(texts, max_size=2).map(tuple),
    choices=st.lists(choices, max_size=2).map(tuple),
)  # fmt: skip
absences = st.builds(Absence, metric=texts, arm=texts, reason=texts)
protocols = st.builds(
    Protocol,
    replicates=counts, most_replicates=counts, target=finite,
    case_budget_s=st.none() | finite, caches=st.sampled_from(Caches),
    arm_budget_s=finite, min_blocks=counts, max_blocks=counts,
    calls=st.none() | counts, discarded_s=finite, discarded_calls=counts, burst_s=finite,
    burst_calls=counts, sample_s=finite,
    allocator=st.sampled_from(Allocator), start_method=st.sampled_from(StartMethod),
)  # fmt: skip
environments = st.builds(
    Environment,
    id=texts, machine=texts, cpu=texts, cpus=counts, memory_bytes=counts, os=texts, python=texts,
    measured_git=st.none() | texts,
    packages=st.dictionaries(texts, texts, max_size=2), git=st.none() | texts,
    governor=st.none() | texts, load_1min=finite,
    variables=st.dictionaries(texts, texts, max_size=2),
)  # fmt: skip
plans = st.builds(
    RunPlan,
    suite=texts, suite_options=st.dictionaries(texts, texts, max_size=2),
    models=st.lists(specs, max_size=2).map(tuple), cases=st.lists(cases, max_size=2).map(tuple),
    experiments=st.lists(texts, max_size=2).map(tuple), protocol=protocols, timeout_s=finite,
    memory_limit_bytes=st.none() | counts, seed=counts, threads=st.none() | counts,
    executor=texts, jobs=counts, no_skip=st.booleans(), busy=st.booleans(),
    retries_for=st.lists(texts, max_size=2).map(tuple),
    raise_backend_errors=st.booleans(),
    tuning=st.none() | tunings, corpus=st.none() | texts,
)  # fmt: skip
between_sds = st.builds(BetweenProcessSd, sd_log=finite, df=finite)
diagnoses = st.builds(
    Diagnosis,
    subject=texts, level=st.sampled_from(Level), finding=texts, remedy=st.none() | texts,
)  # fmt: skip
graphs = st.builds(CapturedGraph, ops=counts, calls=counts)
graph_breaks = st.builds(
    GraphBreak,
    reason=texts, hint=st.none() | texts, file=texts, line=counts, function=texts,
    code=st.none() | texts, times=counts, not_captured_ops=counts,
    not_captured_s=st.none() | finite,
)  # fmt: skip
skipped_frames = st.builds(
    SkippedFrame,
    function=texts,
    file=texts,
    line=counts,
    reason=texts,
    hint=st.none() | texts,
    not_captured_ops=counts,
    not_captured_s=st.none() | finite,
    stopped_file=st.none() | texts,
    stopped_line=st.none() | counts,
)
recompiles = st.builds(Recompile, function=texts, file=texts, line=counts, guard=texts)
coverages = st.builds(
    Coverage,
    frames=counts, frames_ok=counts, frames_again=counts, model_calls=counts,
    graphs=st.lists(graphs, max_size=2).map(tuple), captured_ops=counts, total_ops=counts,
    captured_s=st.none() | finite, total_s=st.none() | finite,
    breaks=st.lists(graph_breaks, max_size=2).map(tuple),
    skipped=st.lists(skipped_frames, max_size=2).map(tuple),
    recompiles=st.lists(recompiles, max_size=2).map(tuple), guards=counts,
    guards_s=st.none() | finite, recompile_limit_hits=counts,
)  # fmt: skip
full_graphs = st.builds(FullGraph, arm=texts, outcome=outcomes, is_inferred=st.booleans())
entries = st.builds(
    CorpusEntry,
    module=texts, project=texts, class_name=texts, init_args=texts, forward_args=texts,
    root=st.none() | texts, beside=st.none() | texts,
)  # fmt: skip
parities = st.builds(
    Parity,
    full_graph=st.lists(full_graphs, max_size=2).map(tuple),
    coverage=st.none() | coverages,
    entry=st.none() | entries,
)
specializations = st.builds(
    Specialization,
    size=texts, number=counts, file=st.none() | texts, line=st.none() | counts,
    function=st.none() | texts, code=st.none() | texts,
)  # fmt: skip
sweeps = st.builds(
    SizeSweep,
    sizes=st.lists(texts, max_size=2).map(tuple), frames=counts,
    recompiles=st.lists(recompiles, max_size=2).map(tuple),
    guards=st.lists(texts, max_size=2).map(tuple),
    specializations=st.lists(specializations, max_size=2).map(tuple),
)  # fmt: skip
founds = st.just(NOTHING) | coverages.map(packed) | sweeps.map(packed)
loads = st.builds(
    Load, wall_s=finite, background_s=finite, is_slowed=st.booleans(), resolution_s=finite
)
block_loads = st.builds(
    BlockLoad, first=counts, last=counts, load=loads,
    isolated=st.none() | st.tuples(texts, counts),
)  # fmt: skip
records = st.builds(
    Record,
    earlier=st.lists(outcomes, max_size=2).map(tuple),
    schema=st.just(1), run_id=texts, case=cases, replicate=counts, outcome=outcomes,
    experiments=st.lists(texts, max_size=2).map(tuple),
    arms=st.lists(arm_results, max_size=2).map(tuple),
    measurements=st.lists(measurements(), max_size=2).map(tuple),
    absent=st.lists(absences, max_size=2).map(tuple), found=founds,
    build_order=st.lists(texts, max_size=2).map(tuple),
    disturbed_blocks=st.lists(counts, max_size=2).map(tuple), repeated_blocks=counts,
    loads=st.lists(block_loads, max_size=2).map(tuple),
    waited=st.booleans(),
    disturbed_isolated_runs=st.booleans(),
    stopped=st.none() | st.sampled_from(StopReason), between_sd=between_sds,
    between_sds=st.dictionaries(texts, between_sds, max_size=2),
    target=st.none() | finite,
    notes=st.lists(texts, max_size=2).map(tuple), varies=st.lists(texts, max_size=2).map(tuple),
    device_name=st.none() | texts, environment_id=texts, seed=counts, started_at=texts,
    seconds=st.dictionaries(texts, finite, max_size=2), command=texts, log=st.none() | texts,
)  # fmt: skip
manifests = st.builds(
    Manifest,
    schema=st.just(1), run_id=texts, created_at=texts, version=texts, program=texts,
    command=texts, plan=plans, environment=environments, between_sd=between_sds,
    between_sds=st.dictionaries(texts, between_sds, max_size=2),
    diagnoses=st.lists(diagnoses, max_size=2).map(tuple),
    sources=st.dictionaries(texts, texts, max_size=2),
)  # fmt: skip
estimates = st.builds(Estimate, value=finite, low=finite, high=finite, n=counts)
ratios = st.builds(Ratio, value=finite, low=finite, high=finite, n=counts, p_value=finite)
jobs = st.builds(
    messages.Job,
    study=texts, experiment=texts, spec=specs, case=cases,
    suite_options=st.dictionaries(texts, texts, max_size=2), protocol=protocols,
    replicate=counts, seed=counts, cache_dir=texts, arms=st.lists(texts, max_size=2).map(tuple),
    threads=st.none() | counts, memory_limit_bytes=st.none() | counts, timeout_s=finite,
    allocator=st.sampled_from(Allocator), isolated_run=counts, fastest_s=st.none() | finite,
    raise_backend_errors=st.booleans(), tuning=st.none() | tunings, corpus=st.none() | texts,
)  # fmt: skip
progresses = st.builds(
    messages.Progress,
    stage=st.sampled_from(Stage), arm=st.none() | texts, doing=st.none() | texts,
)  # fmt: skip
findings = st.builds(
    messages.Findings,
    outcome=outcomes, arms=st.lists(arm_results, max_size=2).map(tuple),
    measurements=st.lists(measurements(), max_size=2).map(tuple),
    absent=st.lists(absences, max_size=2).map(tuple), found=founds,
    build_order=st.lists(texts, max_size=2).map(tuple),
    changed_eager=st.none() | texts,
    disturbed_blocks=st.lists(counts, max_size=2).map(tuple), repeated_blocks=counts,
    loads=st.lists(block_loads, max_size=2).map(tuple),
    waited=st.booleans(),
    notes=st.lists(texts, max_size=2).map(tuple), device_name=st.none() | texts,
)  # fmt: skip
reports = st.builds(
    messages.Report, findings=findings,
    seconds=st.dictionaries(st.sampled_from(Stage), finite, max_size=2),
)  # fmt: skip
preparations = st.builds(
    messages.Preload,
    study=texts, experiments=st.lists(texts, max_size=2).map(tuple),
    suite=texts, suite_options=st.dictionaries(texts, texts, max_size=2),
    specs=st.lists(specs, max_size=2).map(tuple), arms=st.lists(texts, max_size=2).map(tuple),
    device=texts, is_ahead=st.booleans(),
)  # fmt: skip

interims = st.builds(messages.Interim, findings=findings)
contained = st.builds(messages.Contained, missing=st.lists(texts, max_size=2).map(tuple))
endings = st.builds(
    messages.Ended,
    pid=counts, wait_status=counts, peak_bytes=counts, has_altered_server=st.booleans(),
)  # fmt: skip

STRATEGIES: dict[type[Value], st.SearchStrategy[Value]] = {
    Absence: absences,
    ArmResult: arm_results,
    CaptureStats: captures,
    CapturedGraph: graphs,
    Coverage: coverages,
    GraphBreak: graph_breaks,
    Recompile: recompiles,
    SkippedFrame: skipped_frames,
    Diagnosis: diagnoses,
    BetweenProcessSd: between_sds,
    BlockLoad: block_loads,
    Case: cases,
    Overrides: overrides,
    Environment: environments,
    Estimate: estimates,
    CorpusEntry: entries,
    FullGraph: full_graphs,
    Load: loads,
    Manifest: manifests,
    Measurement: measurements(),
    ModelSpec: specs,
    Outcome: outcomes,
    Parity: parities,
    Protocol: protocols,
    Ratio: ratios,
    Record: records,
    RunPlan: plans,
    SizeSweep: sweeps,
    Skip: skips,
    Specialization: specializations,
    messages.Contained: contained,
    messages.Ended: endings,
    messages.Findings: findings,
    messages.Fork: st.builds(messages.Fork, job=jobs, token=texts),
    messages.Job: jobs,
    messages.Preload: preparations,
    messages.Interim: interims,
    messages.Progress: progresses,
    messages.Ready: st.builds(messages.Ready, device_works=st.booleans()),
    messages.Report: reports,
    messages.Started: st.builds(messages.Started),
}


@pytest.mark.parametrize("kind", STRATEGIES, ids=lambda kind: kind.__name__)
@given(data=st.data())
def test_json_gives_back_what_it_was_given(kind: type[Value], data: st.DataObject) -> None:
    """Any value, written as JSON and read again, is the same value."""
    value = data.draw(STRATEGIES[kind])
    text = msgspec.json.encode(value)
    assert b"\n" not in text
    assert msgspec.json.decode(text, type=kind) == value


def test_every_value_is_tried() -> None:
    """The table above holds every value of the vocabulary, and every message."""

    def below(kind: type[Value]) -> set[type[Value]]:
        return set().union(*({each} | below(each) for each in kind.__subclasses__()))

    modules = {
        each.__module__ for each in (Case, Coverage, Parity, Record, SizeSweep, messages.Job)
    }
    assert {kind for kind in below(Value) if kind.__module__ in modules} == set(STRATEGIES)


@pytest.mark.parametrize("kind", STRATEGIES, ids=lambda kind: kind.__name__)
def test_every_field_is_tried(kind: type[Value]) -> None:
    """No strategy leaves a field at its default: every field gets more than one value."""
    # The format's number is the same in every file, and so is a message's tag.
    fixed = {"schema"}
    seen: dict[str, set[bytes]] = {name: set() for name in kind.__struct_fields__}

    def are_all_tried(value: Value) -> bool:
        for name in kind.__struct_fields__:
            seen[name].add(msgspec.json.encode(getattr(value, name)))
        return all(len(values) > 1 for name, values in seen.items() if name not in fixed)

    # Most need a few examples; a field that has one value after this many has no other.
    with contextlib.suppress(NoSuchExample):
        find(
            STRATEGIES[kind],
            are_all_tried,
            settings=settings(derandomize=True, max_examples=2000, phases=[Phase.generate]),
        )
    assert {name for name, values in seen.items() if len(values) == 1} <= fixed


@given(cases, cases)
def test_ids_are_equal_exactly_when_cases_are(one: Case, other: Case) -> None:
    """The id of a case tells it from any other whose names are words."""
    assert (one.id == other.id) == (one == other)


@given(cases, cases, st.sampled_from(Case.__struct_fields__))
def test_ids_differ_by_one_field(one: Case, other: Case, name: str) -> None:
    """Cases that differ in a single field differ in their ids."""
    changed = msgspec.structs.replace(one, **{name: getattr(other, name)})
    assert (one.id == changed.id) == (one == changed)


@given(cases)
def test_ids_are_one_line_and_no_secret(case: Case) -> None:
    """An id can stand in a table and names the model."""
    assert len(case.id.splitlines()) == 1
    assert case.model in case.id
