"""Names of arms: a backend and what is set of it."""

from __future__ import annotations

import pytest

from dynamometer.common.errors import UnknownNameError, UsageError
from dynamometer.common.interfaces import arm_names
from dynamometer.common.interfaces.arm_names import ArmName


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("inductor", "inductor"),
        ("inductor:freezing", "inductor:freezing"),
        ("inductor:max-autotune,freezing", "inductor:freezing,max-autotune"),
        ("inductor:freezing,freezing", "inductor:freezing"),
        ("openvino:precision = bf16", "openvino:precision=bf16"),
        ("my_package.fast:compiler", "my_package.fast:compiler"),
        ("aot_ts", "aot_ts"),
    ],
)
def test_what_is_the_same_is_called_the_same(typed: str, name: str) -> None:
    """Options stand in order, each once; a callable of a user's keeps its name."""
    assert str(arm_names.read(typed)) == name
    assert arm_names.read(name) == arm_names.read(str(arm_names.read(name)))


def test_what_follows_no_backend_is_an_attribute() -> None:
    """`module:attribute` has no options, whatever it looks like."""
    assert arm_names.read("fast:a,b=c") == ArmName("fast:a,b=c")
    assert arm_names.read("inductor:a,b=c") == ArmName("inductor", (("a", None), ("b", "c")))


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("inductor", {}),
        ("inductor:default", {}),
        ("inductor:freezing,cpp-wrapper", {"freezing": True, "cpp_wrapper": True}),
        (
            "inductor:max-autotune,no-cudagraphs",
            {"mode": "max-autotune", "triton.cudagraphs": False},
        ),
        ("inductor:config.max_autotune=True", {"max_autotune": True}),
        ("inductor:config.cpp.simdlen=8", {"cpp.simdlen": 8}),
        ("inductor:config.cpu_backend=halide", {"cpu_backend": "halide"}),
        ("inductor:config.epilogue_fusion=false", {"epilogue_fusion": False}),
        (
            "inductor:config.max_autotune_gemm_backends='ATEN,CPP',freezing",
            {"max_autotune_gemm_backends": "ATEN,CPP", "freezing": True},
        ),
        ("inductor:config.rocm.arch=[1,2],freezing", {"rocm.arch": [1, 2], "freezing": True}),
        ("inductor:config.freezing=1", {"freezing": True}),
        ("inductor:config.triton.min_split_scan_rblock=32", {"triton.min_split_scan_rblock": 32}),
        ("inductor:config.cpp.simdlen=None", {"cpp.simdlen": None}),
        ("onnx:no-spin", {"spinning": False}),
        ("ov:precision=bf16,hint=throughput", {"precision": "bf16", "hint": "throughput"}),
    ],
)
def test_options_set_something(name: str, settings: dict[str, object]) -> None:
    """A word stands for settings; a value is read as Python, or as the word it is."""
    assert arm_names.settings_of(arm_names.read(name)) == settings


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("inductor:", "give NAME:OPTION,OPTION"),
        ("inductor:freezing,", "give NAME:OPTION,OPTION"),
        ("inductor:freezing,,cpp-wrapper", "give NAME:OPTION,OPTION"),
        ("inductor:freezng", "unknown option 'freezng'; did you mean freezing"),
        ("inductor:config.max_autotun=1", "did you mean config.max_autotune"),
        ("inductor:config.freezing", "config.freezing needs a value"),
        ("inductor:config.max_autotune=flase", "max_autotune is True or False, not 'flase'"),
        ("aot_inductor:config.max_autotune=flase", "max_autotune is True or False, not 'flase'"),
        ("inductor:config.max_autotune=2", "max_autotune is True or False, not '2'"),
        ("inductor:config.cpp.simdlen=8.0", "simdlen is a whole number or None, not '8.0'"),
        ("inductor:config.cpu_backend=c", "is one of cpp, triton, halide, pallas, not 'c'"),
        ("inductor:freezing=yes", "freezing takes no value"),
        ("inductor:default,max-autotune", "default and max-autotune contradict each other"),
        ("inductor:no-cudagraphs,cudagraphs", "contradict each other"),
        ("inductor:reduce-overhead,no-cudagraphs", "contradict each other"),
        ("inductor:freezing,config.freezing=False", "contradict each other"),
        ("inductor:max-autotune,config.max_autotune=False", "contradict each other"),
        ("aot_inductor:config.max_autotune=0,max-autotune", "contradict each other"),
        ("inductor:reduce-overhead,config.triton.cudagraphs=False", "contradict each other"),
        (
            "inductor:config.triton.cudagraphs=True,max-autotune-no-cudagraphs",
            "config.triton.cudagraphs=True and max-autotune-no-cudagraphs contradict each other",
        ),
        ("inductor:config.cpp.threads=1,config.cpp.threads=2", "contradict each other"),
        ("onnxrt:spin,no-spin", "contradict each other"),
        ("ov:precision=f8", "one of f32, bf16, f16, not 'f8'"),
        ("ov:precision", "precision needs a value"),
        ("eager:fast", "'eager' has no options"),
    ],
)
def test_what_cant_be_set_is_refused(name: str, says: str) -> None:
    """The message names backend and option, and what comes near."""
    with pytest.raises(UsageError, match=says):
        arm_names.settings_of(arm_names.read(name))


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("eager", "eager"),
        ("my_package.fast:compiler", "my_package.fast:compiler"),
        ("inductor:default", "inductor"),
        ("inductor:config.freezing=true", "inductor:freezing"),
        ("inductor:config.freezing=1,freezing", "inductor:freezing"),
        ("inductor:config.triton.cudagraphs=False", "inductor:no-cudagraphs"),
        ("inductor:max-autotune,no-cudagraphs", "inductor:max-autotune,no-cudagraphs"),
        (
            "inductor:config.triton.cudagraphs=False,max-autotune",
            "inductor:max-autotune,no-cudagraphs",
        ),
        ("inductor:max-autotune,config.max_autotune=True", "inductor:max-autotune"),
        ("inductor:reduce-overhead,cudagraphs", "inductor:reduce-overhead"),
        ("aot_inductor:max-autotune,config.max_autotune=1", "aot_inductor:max-autotune"),
        (
            "inductor:config.epilogue_fusion=1,freezing",
            "inductor:config.epilogue_fusion=True,freezing",
        ),
        ("inductor:config.cpp.simdlen=None", "inductor:config.cpp.simdlen=None"),
        ("inductor:config.epilogue_fusion=false", "inductor:config.epilogue_fusion=False"),
        ("inductor:config.cpp.simdlen=0x10", "inductor:config.cpp.simdlen=16"),
        (
            "inductor:config.max_autotune_gemm_backends='ATEN,CPP'",
            "inductor:config.max_autotune_gemm_backends='ATEN,CPP'",
        ),
        ("inductor:config.cpu_backend='halide'", "inductor:config.cpu_backend=halide"),
        ("onnx:spin", "onnx"),
        ("onnx:no-spin", "onnx:no-spin"),
        ("ov:precision=f32,hint=throughput", "ov:hint=throughput"),
        ("inductor:config.global_cache_dir='None'", "inductor:config.global_cache_dir='None'"),
        ("inductor:config.multi_kernel_hints=[1,2]", "inductor:config.multi_kernel_hints=[1, 2]"),
    ],
)
def test_the_same_settings_have_one_name(typed: str, name: str) -> None:
    """Words for settings that have one, and nothing that is so anyway; it is stable."""
    found = arm_names.canonical(arm_names.read(typed))
    assert str(found) == name
    assert arm_names.canonical(arm_names.read(name)) == arm_names.read(name)


def test_an_option_goes_to_every_backend_that_has_it() -> None:
    """Others stay as they are; what one has already it isn't given twice."""
    arms = [arm_names.read(name) for name in ("inductor:freezing", "eager", "aot_inductor")]
    found = arm_names.with_config(arms, ["freezing", "max_autotune=True"])
    assert [str(each) for each in found] == [
        "inductor:config.max_autotune=True,freezing",
        "eager",
        "aot_inductor:config.max_autotune=True,freezing",
    ]


def test_a_value_with_commas_comes_back_from_a_name() -> None:
    """As a worker reads it, and whoever repeats a case."""
    text = "max_autotune_gemm_backends=ATEN,CPP"
    (found,) = arm_names.with_config([arm_names.read("inductor")], [text])
    assert arm_names.read(str(found)) == found
    assert arm_names.settings_of(found) == {"max_autotune_gemm_backends": "ATEN,CPP"}


def test_what_nobody_does_is_left_out_already() -> None:
    """As PyTorch's scripts type --disable-cudagraphs for any backend."""
    arms = [arm_names.read("aot_eager")]
    assert arm_names.with_config(arms, ["no-cudagraphs"]) == arms


@pytest.mark.parametrize(
    ("arms", "text", "says"),
    [
        (["eager", "aot_eager"], "freezing", "eager, aot_eager has no options"),
        (["inductor", "ov"], "spin", "unknown option 'spin'"),
        (["eager"], "no-cudagrphs", "eager has no options"),
        (["inductor"], "max_autotun=True", "did you mean max-autotune"),
    ],
)
def test_an_option_nobody_has_is_refused(arms: list[str], text: str, says: str) -> None:
    """It would do nothing."""
    with pytest.raises(UsageError, match=says):
        arm_names.with_config([arm_names.read(arm) for arm in arms], [text])


def test_what_is_for_inference_alone_is_known() -> None:
    """Which weights can't be trained is said of an option."""
    assert arm_names.training_refusal(arm_names.read("inductor:max-autotune")) is None
    refusal = arm_names.training_refusal(arm_names.read("inductor:max-autotune,freezing"))
    assert refusal == (
        "inductor:freezing,max-autotune: freezing is for inference; leave it out, or --training"
    )
    assert arm_names.training_refusal(arm_names.read("inductor:config.freezing=True"))
    assert arm_names.training_refusal(arm_names.read("inductor:config.freezing=False")) is None
    assert arm_names.training_refusal(arm_names.read("eager")) is None


@pytest.mark.parametrize("backend", ["inductor", "aot_inductor"])
def test_a_part_of_a_mode_is_left_out_by_giving_the_others(backend: str) -> None:
    """The message has the words, and they are taken; where a mode is one setting there are none."""
    with pytest.raises(UsageError) as found:
        arm_names.settings_of(arm_names.read(f"{backend}:max-autotune,config.max_autotune=False"))
    words = str(found.value).partition("give instead of both what is to be set: ")[2]
    settings = arm_names.settings_of(arm_names.read(f"{backend}:{words}"))
    assert settings.pop("max_autotune") is False
    assert settings.pop("coordinate_descent_tuning") is True
    assert settings in ({}, {"triton.cudagraphs": True})
    with pytest.raises(UsageError, match=r"leave one out$"):
        arm_names.settings_of(arm_names.read("inductor:reduce-overhead,no-cudagraphs"))


def test_a_backend_nobody_knows() -> None:
    """It is looked up, and near names are given."""
    with pytest.raises(UnknownNameError, match="did you mean inductor"):
        arm_names.declared("inducter")
