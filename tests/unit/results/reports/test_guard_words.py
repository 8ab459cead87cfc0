from __future__ import annotations

import pytest

from dynamometer.results.reports.guard_words import in_words

TENSOR = (
    "check_tensor(L['self']._modules['fc']._parameters['weight'], Parameter,"
    " DispatchKeySet(CPU, BackendSelect, AutogradCPU), torch.float32, device=None,"
    " requires_grad=True, size=[None, 3], stride=[3, 1])"
)


SCALAR = (
    "check_tensor(L['x'], Tensor, DispatchKeySet(CUDA), torch.int64, device=0,"
    " requires_grad=False, size=[], stride=[])"
)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (
            TENSOR,
            "self.fc.weight is a float32 Parameter of size [any, 3], stride [3, 1], with gradient",
        ),
        (
            SCALAR,
            "x is a int64 tensor of size [], stride [] on device 0, without gradient",
        ),
        ("___check_type_id(L['n'], 9426080), type=<class 'int'>", "n is of type int"),
        ("___check_obj_id(G['torch'], 139), type=<class 'module'>", "torch is the same module"),
        ("___check_obj_id(L['f'], 139)", "f is the same object"),
        ("utils_device.CURRENT_DEVICE == None", "no default device is set"),
        ("check_no_aliasing(L['x'], L['y'])", "x, y are different tensors"),
        (
            "not ___dict_contains('forward', L['self'].__dict__)",
            "self.__dict__ has no 'forward'",
        ),
        (
            "hasattr(L['x'], '_dynamo_static_indices') == False",
            "no size of x is marked as dynamic or static",
        ),
        ("hasattr(L['self'], 'scale')", "self has an attribute 'scale'"),
        ("len(L['self'].layers) == 3", "self.layers has 3 elements"),
        ("L['n'] == 3", "n == 3"),
        ("2 <= L['x'].size()[0]", "2 <= x.size()[0]"),
        ("something nobody has seen", "something nobody has seen"),
    ],
)
def test_guards_in_words(code: str, words: str) -> None:
    """What Dynamo checks, as a user would say it; what isn't known as it is."""
    assert in_words(code) == words


@pytest.mark.parametrize("code", ["___check_global_state() against {'grad': 1}", TENSOR])
def test_nothing_private_is_left(code: str) -> None:
    """Words name none of Dynamo's own functions."""
    assert "___" not in in_words(code)
    assert "DispatchKey" not in in_words(code)
