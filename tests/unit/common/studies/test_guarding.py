"""A candidate that makes others slower or faster fails for it, and what it did is undone."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
import torch
from torch._inductor import config as inductor

from dynamometer.common.interfaces.messages import Findings
from dynamometer.common.interfaces.outcome import ChangedSettingsError
from dynamometer.common.studies.experiment import Context, StageClock
from dynamometer.common.studies.tuning import worker as tuning
from dynamometer.common.studies.tuning.worker import _Keeping
from dynamometer.dynamo import process_settings
from dynamometer.results.values.cases import BASELINE
from dynamometer.results.values.records import PASSED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

CHANGES: dict[str, Callable[[], object]] = {
    "intra-op threads": lambda: torch.set_num_threads(torch.get_num_threads() + 1),
    "oneDNN": lambda: torch.backends.mkldnn.set_flags(False),
    "flushing of denormal numbers": lambda: torch.set_flush_denormal(True),
    "detection of anomalies, and of NaN": lambda: torch.autograd.set_detect_anomaly(
        mode=True, check_nan=False
    ),
    "cuDNN's benchmarking": lambda: setattr(torch.backends.cudnn, "benchmark", True),
}


@pytest.fixture(autouse=True)
def _undone() -> Iterator[None]:
    """Leave the process as it was, whatever a test finds."""
    before = process_settings.pace()
    yield
    process_settings.put_back_pace(before)


def keeping(kind: type[Context] = _Keeping, arms: Sequence[str] = (BASELINE, "mine")) -> Context:
    """Make the context of tuning, or another, with nothing but the names of its arms."""
    nothing = cast("Any", None)
    job = SimpleNamespace(arms=arms)
    stages = StageClock(lambda _: None)
    return kind(cast("Any", job), nothing, nothing, stages, nothing)


@pytest.mark.parametrize("name", CHANGES)
def test_a_candidate_that_changes_settings_fails(name: str) -> None:
    """The reason says which; the next candidate finds them as they were."""
    before, context = process_settings.pace(), keeping()
    with pytest.raises(ChangedSettingsError, match=f"{name} from"), context.guarding("mine:bad"):
        CHANGES[name]()
    assert process_settings.pace() == before
    with context.guarding("mine:good"):
        pass


def raising() -> None:
    """Change a setting, then fail."""
    CHANGES["oneDNN"]()
    msg = "not today"
    raise ValueError(msg)


def test_what_it_raises_itself_counts_first() -> None:
    """Its settings are put back all the same."""
    before = process_settings.pace()
    with pytest.raises(ValueError, match="not today"), keeping().guarding("mine:bad"):
        raising()
    assert process_settings.pace() == before


def test_what_is_changed_between_is_found_too() -> None:
    """While arms are timed together nobody looks; whoever is called next starts as all did."""
    before, context = process_settings.pace(), keeping()
    with context.guarding("mine:bad"):
        pass
    CHANGES["oneDNN"]()
    with context.guarding("mine:good"):
        assert process_settings.pace() == before


def test_eager_may_set_what_its_model_sets() -> None:
    """Nobody takes it for an arm's doing."""
    for kind in (Context, _Keeping):
        with keeping(kind).guarding(BASELINE):
            CHANGES["oneDNN"]()
        with keeping(kind).guarding("mine:good"):
            assert not torch.backends.mkldnn.enabled
        torch.backends.mkldnn.set_flags(True)


@pytest.mark.parametrize("name", CHANGES)
def test_where_nothing_is_chosen_an_arm_does_not_fail_for_it(name: str) -> None:
    """It is put back all the same, and noted: eager and other arms would be timed so."""
    before, context = process_settings.pace(), keeping(Context)
    with context.guarding("mine:bad"):
        CHANGES[name]()
    assert process_settings.pace() == before
    (note,) = context.notes
    assert note.startswith(f"mine:bad set for all arms, and it was put back: {name} from ")
    with context.guarding("mine:good"):
        pass
    assert context.notes == [note]


@pytest.mark.parametrize("kind", [Context, _Keeping])
@pytest.mark.parametrize(
    ("arms", "stays"), [((BASELINE, "one"), True), ((BASELINE, "one", "two"), False)]
)
def test_options_of_compilers_are_put_back_for_other_arms(
    kind: type[Context], arms: tuple[str, ...], *, stays: bool
) -> None:
    """Where there are others; alone it may need them again, when it compiles for other sizes."""
    context, own_pass = keeping(kind, arms), lambda graph: graph
    with inductor.patch(post_grad_custom_pre_pass=None, max_autotune=False):
        with context.guarding("one"):
            inductor.post_grad_custom_pre_pass = own_pass
            inductor.max_autotune = True
        assert (inductor.post_grad_custom_pre_pass is own_pass) is stays
        assert inductor.max_autotune is stays
    names = (f"torch._inductor.config.{name}" for name in ("max_autotune", "post_grad_custom_"))
    assert all(any(name in note for note in context.notes) is not stays for name in names)


def test_what_aot_inductor_notes_of_its_device_is_no_option() -> None:
    """Torch writes that among its options with each compilation."""
    context = keeping(Context, (BASELINE, "one", "two"))
    with inductor.patch({"aot_inductor.metadata": {}}), context.guarding("one"):
        inductor.aot_inductor.metadata["AOTI_DEVICE_KEY"] = "cpu"
    assert not context.notes


class Pass:
    """Can be neither copied nor compared."""

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def __eq__(self, _: object) -> bool:
        """Behave as an array of several elements does."""
        msg = "ambiguous"
        raise ValueError(msg)

    __hash__ = None  # type: ignore[assignment]  # as of whatever is compared by its contents


def test_an_option_may_be_anything() -> None:
    """Nobody copies what others have made; it is the same as itself."""
    context, before = keeping(Context, (BASELINE, "one", "two")), Pass()
    with inductor.patch(post_grad_custom_pre_pass=before):
        with context.guarding("one"):
            pass
        assert not context.notes
        with context.guarding("two"):
            inductor.post_grad_custom_pre_pass = Pass()
        assert inductor.post_grad_custom_pre_pass is before
    assert len(context.notes) == 1


def test_what_a_module_sets_when_it_is_imported_is_no_arms_doing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does that once, so that other arms of it would be without."""
    (tmp_path / "backends_of_one_user.py").write_text(
        "import torch\n"
        "torch._inductor.config.comment_origin = True\n"
        "def one(graph, inputs):\n    return graph\n"
        "two = one\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    arms = [f"backends_of_one_user:{name}" for name in ("one", "two")]
    context = keeping(Context, (BASELINE, *arms))
    with inductor.patch(comment_origin=False):
        for arm in arms:
            with context.guarding(arm):
                assert inductor.comment_origin
        assert inductor.comment_origin
    assert not context.notes


def test_what_is_noted_while_tuning_is_in_the_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker reads the notes of the context that it made."""

    def measured(context: Context) -> Findings:
        context.notes.append("put back")
        return Findings(outcome=PASSED)

    context = keeping(Context)
    monkeypatch.setattr(tuning, "measure_speedup", measured)
    tuning.measure(context)
    assert context.notes == ["put back"]
