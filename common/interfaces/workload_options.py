"""The options that say which models a run takes, and how it runs them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dynamometer.common.interfaces.option import (
    Argument,
    DeviceType,
    Exclusion,
    Flag,
    Member,
    Need,
    OneOf,
    Several,
    Switch,
    Valued,
)
from dynamometer.results.values.cases import (
    BASELINE,
    NO_OVERRIDES,
    TORCHSCRIPT,
    Dtype,
    DynamicDims,
    MatmulPrecision,
    Mode,
    Scale,
)

if TYPE_CHECKING:
    from dynamometer.common.interfaces.option import Option
    from dynamometer.results.values.cases import Case, RunPlan

TARGET = Argument[str | None](("TARGET",), default=None, reads=click.STRING)
"""Of `dynamometer run`: a suite, or what names models of one."""

INCLUDE = Several(
    ("-k", "--filter"), reads=click.STRING, metavar="REGEX", group="Selection",
    help="Models whose name contains a match; may be repeated, any counts.",
)  # fmt: skip
EXCLUDE = Several(
    ("-x", "--exclude"), reads=click.STRING, metavar="REGEX", group="Selection",
    help="Leave these out.",
)  # fmt: skip
ONLY = Several(
    ("--only",), reads=click.STRING, metavar="NAME", group="Selection",
    help="Exactly this model; may be repeated; -k and -x choose among those named.",
    again=lambda _, case: (case.model,),
)  # fmt: skip
QUICK = Flag(
    ("--quick",), group="Selection",
    help="A few models, one replicate. The default where nothing else is asked for.",
)  # fmt: skip
NO_SKIP = Flag(
    ("--no-skip",), group="Selection",
    help="Run also what the suite's tables skip.",
    again=lambda plan, case: plan.no_skip
    or plan.spec_of(case).skip_reason(case.device, case.mode) is not None,
)  # fmt: skip
PARTITION_ID = Valued(
    ("--partition-id",), reads=click.IntRange(0), default=0, metavar="I", group="Selection",
    help="Which part of the selection to run, from 0.",
)  # fmt: skip
TOTAL_PARTITIONS = Valued(
    ("--total-partitions",), reads=click.IntRange(1), default=1, metavar="N", group="Selection",
    help="How many equal parts the selection is cut into.",
)  # fmt: skip
LIST = Flag(
    ("--list",), group="Selection", help="Print the selected names, one a line, and stop."
)  # fmt: skip


EVERY_BACKEND = "all"
"""In place of a backend's name: whichever can be used here."""

_OF_FLAGS = {
    "--speedup-ts": (
        (TORCHSCRIPT,),
        "Also TorchScript, traced and frozen, without Dynamo; torch has deprecated it.",
    ),
    "--speedup-onnx": (("onnx",), "Also ONNX Runtime on the whole model, without Dynamo."),
    "--speedup-openvino": (("ov",), "Also OpenVINO, likewise."),
    "--speedup-export": (
        ("export", "aot_inductor"), "Also the exported program, and AOTInductor on it."
    ),
    "--speedup-trt": (("trt",), "Also TensorRT on the whole model, without Dynamo."),
}  # fmt: skip
"""The arms that each stands for, and its help."""
WHOLE_MODEL = tuple(
    (Flag((flag,), group="Workload", help=text), arms) for flag, (arms, text) in _OF_FLAGS.items()
)
"""Options that ask for whole models without Dynamo, each with the arms it means. Never said again:
`--backend` names their arms, also to a study that excludes these."""
BACKENDS = Several(
    ("--backend",), reads=click.STRING, metavar="NAME[:OPTIONS]", group="Workload",
    help="What is held to eager, by a name of `dynamometer ls backends` or of torch.compile, with"
    " options, such as inductor:max-autotune,freezing; or module:attribute of your own; or `all`"
    " that can be used here, beside which only ensemble may be named; may be repeated."
    "  [default: inductor, unless a --speedup-... is given; with parity.py or --parity eager; with"
    " --tune the candidates (--candidate)]",
    again=lambda _, case: tuple(arm for arm in case.arms if arm != BASELINE),
)  # fmt: skip
CONFIG = Several(
    ("-c", "--config"), reads=click.STRING, metavar="KEY[=VALUE]", group="Workload",
    help="An option of every backend that has it (`dynamometer ls backends --long`); may be"
    " repeated.",
)  # fmt: skip

BACKEND_OPTIONS: tuple[Option[Any], ...] = (
    BACKENDS, CONFIG, *(flag for flag, _ in WHOLE_MODEL),
)  # fmt: skip
"""Those that say what eager is compared with."""
DEVICE = Valued(
    ("-d", "--device"), reads=DeviceType(), default="cpu", metavar="TYPE", group="Workload",
    help="Where to run: cpu, cuda, or any other device type of torch, such as xpu.",
    again=lambda _, case: case.device, is_always_said=True,
)  # fmt: skip
SCALE = Valued(
    ("--scale",), reads=Member(Scale), default=Scale.FULL, group="Workload",
    help="The published configuration, or one shrunk in depth, width and input.",
    again=lambda _, case: case.scale, is_always_said=True,
)  # fmt: skip
DTYPE = OneOf(
    tuple(f"--{dtype}" for dtype in Dtype), values=tuple(Dtype), default=Dtype.FLOAT32,
    group="Workload",
    helps=(
        "Weights and inputs in float32; the default.",
        "In float16.",
        "In bfloat16.",
        "In float32, under automatic mixed precision.",
    ),
    again=lambda _, case: case.dtype, is_always_said=True,
)  # fmt: skip
TRAINING = Switch(
    ("--training", "--inference"), default=False, group="Workload",
    help="Whole training steps, or forward passes.  [default: --inference]",
    again=lambda _, case: case.mode is Mode.TRAINING, is_always_said=True,
)  # fmt: skip
MATMUL_PRECISION = Valued(
    ("--matmul-precision",), reads=Member(MatmulPrecision), default=MatmulPrecision.HIGHEST,
    group="Workload",
    help="Of float32 matrix products, in eager and in arms: highest is float32, high TF32 where "
    "the device has it, medium bfloat16.",
    again=lambda _, case: case.matmul_precision,
)  # fmt: skip
CHANNELS_LAST = Flag(
    ("--channels-last",), group="Workload", help="Weights and images with channels innermost.",
    again=lambda _, case: case.channels_last,
)  # fmt: skip
COMPILED_OPTIMIZER = Flag(
    ("--compile-optimizer",), group="Workload",
    help="With --training: the optimizer's step is compiled too.",
    again=lambda _, case: case.compiled_optimizer,
    needs=Need(
        TRAINING, "--compile-optimizer goes with --training: without it there is no optimizer"
    ),
)  # fmt: skip
NOPYTHON = Flag(
    ("--nopython",), group="Workload",
    help="Dynamo must capture each model in one graph; where it can't, say why and where.",
    again=lambda _, case: case.nopython,
)  # fmt: skip
DYNAMIC_BATCH = Flag(
    ("--dynamic-batch-only",), group="Workload",
    help="Likewise, but only the sizes that differ are dynamic, also if --dynamic-shapes is given.",
    again=lambda _, case: case.has_dynamic_dims(DynamicDims.BATCH),
)  # fmt: skip
DYNAMIC = Flag(
    ("--dynamic-shapes",), group="Workload",
    help="Steps go through five sizes of inputs, compiled for dynamic shapes.",
    again=lambda _, case: case.has_dynamic_dims(DynamicDims.ALL),
)  # fmt: skip
ALLOW_IN_GRAPH = Several(
    ("--allow-in-graph",), reads=click.STRING, metavar="MODULE:FUNCTION", group="Workload",
    help="Also run with this function put into graphs unseen; may be repeated.",
    again=lambda _, case: case.overrides.allow_in_graph,
)  # fmt: skip
DISABLE_FRAME = Several(
    ("--disable-frame",), reads=click.STRING, metavar="MODULE:FUNCTION", group="Workload",
    help="Also run with this function, or Class.method, left to Python; may be repeated.",
    again=lambda _, case: case.overrides.disable,
)  # fmt: skip
SUBSTITUTE = Several(
    ("--substitute",), reads=click.STRING, metavar="MODULE:FUNCTION=MODULE:FUNCTION",
    group="Workload",
    help="Also run with the second captured in place of the first; may be repeated.",
    again=lambda _, case: tuple("=".join(pair) for pair in case.overrides.substitute),
)  # fmt: skip
MODEL_OVERRIDES = Flag(
    ("--overrides",), group="Workload",
    help="Also run each model with the overrides its table declares.",
)  # fmt: skip
ONLY_OVERRIDES = Flag(
    ("--only-overrides",), group="Workload",
    help="Leave out the models as they are without overrides.",
    again=lambda _, case: case.overrides != NO_OVERRIDES,
)  # fmt: skip
RAISE_BACKEND_ERRORS = Flag(
    ("--raise-backend-errors",), group="Workload",
    help="An arm fails with its backend; else a graph it fails on runs in eager, and is counted.",
    again=lambda plan, _: plan.raise_backend_errors,
)  # fmt: skip


def _batch_size(plan: RunPlan, case: Case) -> int | None:
    """Return the batch size, where it isn't the one the model has anyway."""
    usual = plan.spec_of(case).batch_size_at(
        case.scale, case.device, case.mode, dynamic=case.dynamic
    )
    return case.batch_size if case.batch_size != usual else None


BATCH_SIZE = Valued[int | None](
    ("--batch-size",), reads=click.IntRange(1), default=None, metavar="N", group="Workload",
    help="Instead of the suite's own.",
    again=_batch_size,
)  # fmt: skip

BATCH_SIZE_FILE = Valued[Path | None](
    ("--batch-size-file",), reads=click.Path(dir_okay=False, path_type=Path), default=None,
    metavar="FILE", group="Workload",
    help="Batch sizes of some models, in lines of `model,size`; others keep the suite's own.",
    excludes=Exclusion((BATCH_SIZE,), "--batch-size-file gives models sizes of their own"),
)  # fmt: skip

OVERRIDE_OPTIONS: tuple[Option[Any], ...] = (
    ALLOW_IN_GRAPH, DISABLE_FRAME, SUBSTITUTE, MODEL_OVERRIDES, ONLY_OVERRIDES,
)  # fmt: skip
"""Those that tell Dynamo how to treat functions."""
