"""Dynamo's guards in words. Pure functions of their text; no torch.

The text is what torch prints with TORCH_LOGS=guards; what isn't recognised is given as it is.
"""

from __future__ import annotations

import re

_SCOPE = re.compile(r"\b[LG]\['(\w+)'\]")
_MEMBER = re.compile(r"(?:\.__dict__)?\['(?:_modules|_parameters|_buffers)'\]\['(\w+)'\]")
_REGISTERED = re.compile(r"\._(?:modules|parameters|buffers)\['(\w+)'\]")
_ATTRIBUTE = re.compile(r"\.__dict__\['(\w+)'\]")
_TYPE = r"<class '(?P<type>[^']+)'>"

_TENSOR = re.compile(
    r"check_tensor\((?P<name>.+), (?P<class>\w+), DispatchKeySet\(.*?\), torch\.(?P<dtype>\w+), "
    r"device=(?P<device>\w+), requires_grad=(?P<grad>\w+), "
    r"size=(?P<size>\[.*?\]), stride=(?P<stride>\[.*?\])\)"
)
_SENTENCES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), sentence)
    for pattern, sentence in (
        (rf"___check_type_id\((?P<name>.+), \d+\), type={_TYPE}", "{name} is of type {type}"),
        (r"___check_type_id\((?P<name>.+), \d+\)", "{name} is of the same type"),
        (rf"___check_obj_id\((?P<name>.+), \d+\), type={_TYPE}", "{name} is the same {type}"),
        (r"___check_obj_id\((?P<name>.+), \d+\)", "{name} is the same object"),
        (
            r"___check_global_state\(\).*",
            "torch's modes (gradients, autocast, threads) are the same",
        ),
        (r"___check_torch_function_mode_stack\(\)", "no other __torch_function__ mode is entered"),
        (r"utils_device\.CURRENT_DEVICE == None", "no default device is set"),
        (r"check_no_aliasing\((?P<name>.+)\)", "{name} are different tensors"),
        (r"not ___dict_contains\('(?P<key>\w+)', (?P<name>.+)\)", "{name} has no {key!r}"),
        (r"___dict_contains\('(?P<key>\w+)', (?P<name>.+)\)", "{name} has {key!r}"),
        (
            r"hasattr\((?P<name>.+), '_dynamo_\w*indices'\) == False",
            "no size of {name} is marked as dynamic or static",
        ),
        (r".*top_saved_tensors_hooks ids == None", "no hooks for saved tensors are set"),
        (r"not hasattr\((?P<name>.+), '(?P<key>\w+)'\)", "{name} has no attribute {key!r}"),
        (r"hasattr\((?P<name>.+), '(?P<key>\w+)'\)", "{name} has an attribute {key!r}"),
        (r"(?:len|dict\.__len__)\((?P<name>.+)\) == (?P<key>\d+)", "{name} has {key} elements"),
    )
)


def in_words(code: str) -> str:
    """Return what a guard asks for.

    Args:
        code: such as `check_tensor(L['x'], Tensor, ...)` or `L['n'] == 3`.
    """
    code = code.strip()
    tensor = _TENSOR.fullmatch(code)
    if tensor:
        return _of_tensor(tensor)
    for pattern, sentence in _SENTENCES:
        found = pattern.fullmatch(code)
        if found:
            return sentence.format(
                **{key: readable(text) for key, text in found.groupdict().items()}
            )
    return readable(code)


_FAILED = re.compile(r"^\d+/\d+: |  # .*$| \(HINT: .*\)$")
"""What torch puts around a guard that failed: its number, where it comes from, and advice."""


def failed_in_words(text: str) -> str:
    """Return what a guard that failed asked for; torch's own sentences stay as they are."""
    return in_words(_FAILED.sub("", text))


def _of_tensor(found: re.Match[str]) -> str:
    size, stride = (found[part].replace("None", "any") for part in ("size", "stride"))
    kind = "tensor" if found["class"] == "Tensor" else found["class"]
    where = "" if found["device"] == "None" else f" on device {found['device']}"
    gradient = "with" if found["grad"] == "True" else "without"
    name = readable(found["name"])
    return (
        f"{name} is a {found['dtype']} {kind} of size {size}, stride {stride}{where},"
        f" {gradient} gradient"
    )


def readable(expression: str) -> str:
    """Write an expression of Dynamo's as a user would: `L['self']._modules['a']` as `self.a`."""
    for pattern in (_MEMBER, _REGISTERED, _ATTRIBUTE):
        expression = pattern.sub(r".\1", expression)
    return _SCOPE.sub(r"\1", expression)
