"""Arguments of a call as text, which a corpus holds and which is tried. Pure; no torch."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dynamometer.results.store.reading import BAD_PYTHON

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

SIZE = 16
"""Of every dimension that nothing is known of: where all are equal, most layouts fit."""


@dataclass(frozen=True)
class Arguments:
    """Expressions that are given to a call.

    Attributes:
        positional: in order.
        keyword: by name.
    """

    positional: tuple[str, ...] = ()
    keyword: Mapping[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """An expression for a pair of a list and a dictionary, as a corpus has it."""
        named = ", ".join(f"{name!r}: {text}" for name, text in self.keyword.items())
        return f"([{', '.join(self.positional)}], {{{named}}})"


@dataclass(frozen=True)
class Parameter:
    """What a call must be given.

    Attributes:
        name: of the parameter.
        annotation: its text, or nothing.
        is_positional: whether it can't be given by name.
    """

    name: str
    annotation: str
    is_positional: bool = False


_FRACTIONS = (
    "alpha", "beta", "drop", "dropout", "eps", "epsilon", "gamma", "margin", "momentum", "p",
    "prob", "rate", "ratio", "scale", "sigma", "slope", "temperature", "threshold",
)  # fmt: skip
_NUMBERS = (
    (rf"(^|_)({'|'.join(_FRACTIONS)})($|_)", ("0.1", "0.5", "1", "2")),
    (r"kernel|(^|_)ks?($|_)|window", ("3", "(3, 3)", "1", "4", "(4, 4)")),
    (r"stride|dilation|groups|expansion|expand|mult|reduction|downsample",
     ("1", "2", "(1, 1)", "4")),
    (r"pad", ("1", "0", "(1, 1)")),
    (r"head", ("4", "1", "8")),
    (r"num_classes|n_classes|classes|labels", ("10", "1")),
    (r"patch", ("4", "(4, 4)", "16")),
    (r"img|image|resolution|input_size|height|width|spatial|size$",
     ("16", "(16, 16)", "32", "(32, 32)", "224")),
    (r"layers|depth|blocks|num_|n_|steps|repeat|stages|levels|order|iters|hops|rank",
     ("2", "1", "4", "[2, 2]", "[1, 1, 1, 1]", "[2, 2, 2, 2]")),
    (r"vocab|embeddings|num_embed", ("100", "1000")),
    (r"len", ("16", "100")),
)  # fmt: skip
"""What numbers a parameter may take, by its name."""
_SIZES = (f"{SIZE}", f"[{SIZE}, {SIZE}]", f"[{SIZE}] * 4", "4", "3", "64", "1")
_WORDS = (
    (r"act|nonlin|relu", ("nn.ReLU", "nn.ReLU()", "'relu'", "'gelu'", "None")),
    (r"norm", ("nn.BatchNorm2d", "nn.LayerNorm", "nn.Identity", "'batch'", "None", "'bn'")),
    (r"mode|type|kind|method|reduction|pool|variant|style|name|aggr",
     ("'mean'", "'max'", "'sum'", "'add'", "'bilinear'", "'zeros'")),
    (r"block|layer|module|conv|model|backbone|encoder|decoder|head|net|body|stem|proj|submodule",
     (f"nn.Linear({SIZE}, {SIZE})", f"nn.Conv2d({SIZE}, {SIZE}, 3, padding=1)", "nn.Identity()",
      "nn.Conv2d", "nn.Linear", "nn.ModuleList([nn.Identity()])")),
    (r"func|fn$|callable", ("torch.relu", "nn.ReLU", "nn.Identity()")),
    (r"bias|affine|use_|is_|with_|enable|causal|learn|inplace|pretrained|^no_|flag",
     ("False", "True")),
    (r"config|cfg|opt|args|params|hparams|settings", ("_mock_config()", "{}")),
    (r"device|dtype", ("None", "torch.float32")),
    (r"path|file|weights|checkpoint", ("None", "''")),
)  # fmt: skip
_MODULES = (
    f"nn.Linear({SIZE}, {SIZE})", f"nn.Conv2d({SIZE}, {SIZE}, 3, padding=1)", "nn.Identity()",
)  # fmt: skip
_SEQUENCE = r"(?:List|list|Sequence|Iterable|Tuple|tuple)"
_BY_ANNOTATION = (
    (r"\bbool\b", ("False", "True")),
    (r"\bstr\b", ("'mean'", "'relu'", "'zeros'", "'max'", "'gelu'", "''")),
    (r"Callable|Type\[|type\[",
     ("nn.ReLU", "nn.BatchNorm2d", "nn.LayerNorm", "nn.Identity", "nn.Conv2d")),
    (rf"ModuleList|{_SEQUENCE}\[(?:nn\.)?Module",
     ("nn.ModuleList([nn.Identity()])", "[nn.Identity()]")),
    (r"Module|Linear|Conv", _MODULES),
    (r"Tensor", (f"torch.rand([{SIZE}])", f"torch.rand([{SIZE}, {SIZE}])", f"torch.eye({SIZE})")),
    (r"\bDict|\bdict|Mapping", ("{}",)),
    (rf"{_SEQUENCE}\[\s*{_SEQUENCE}",
     (f"[[{SIZE}, {SIZE}], [{SIZE}, {SIZE}]]", f"[({SIZE}, {SIZE}), ({SIZE}, {SIZE})]")),
    (r"(?:Tuple|tuple)", (f"({SIZE}, {SIZE})", "(3, 3)", f"({SIZE}, {SIZE}, {SIZE})")),
    (_SEQUENCE,
     (f"[{SIZE}, {SIZE}]", f"[{SIZE}] * 4", "[0, 1, 2, 3]", "[2, 2]", "[0.5, 0.5]")),
    (r"\bfloat\b", ("0.1", "1.0", "0.5")),
)  # fmt: skip
"""What a parameter of a type may be given."""
_LARGEST = 4096
"""Size that is taken from an error: what is larger is no dimension of a small input."""


@dataclass(frozen=True)
class Hints:
    """What errors speak of, which may be what they ask for.

    Attributes:
        words: that they quote.
        sizes: and numbers.
    """

    words: Sequence[str] = ()
    sizes: Sequence[int] = ()


NO_HINTS = Hints()


def guesses_of(parameter: Parameter, hints: Hints = NO_HINTS) -> list[str]:
    """Return what a constructor's parameter may be given, the likeliest first.

    Args:
        parameter: that has no default.
        hints: of what was tried before.
    """
    name, annotation = parameter.name.lower(), parameter.annotation
    literal = re.search(r"Literal\[([^\]]+)\]", annotation)
    found = [text.strip() for text in literal[1].split(",")] if literal else []
    by_type = _first_match(_BY_ANNOTATION, annotation)
    numbers = _first_match(_NUMBERS, name) or _SIZES
    is_number = re.search(r"\bint\b", annotation) and not by_type
    ranked = (numbers,) if is_number else (by_type, _first_match(_WORDS, name), numbers, _SIZES)
    found += [text for texts in ranked for text in texts]
    if any(text.startswith("'") for text in found):
        found[:0] = map(repr, hints.words)
    if found[0].isdigit():
        found[1:1] = map(str, hints.sizes)
    if re.search("Optional|None", annotation):
        found.append("None")
    return [*dict.fromkeys(found)]


def _first_match(table: Sequence[tuple[str, tuple[str, ...]]], text: str) -> tuple[str, ...]:
    return next((texts for pattern, texts in table if re.search(pattern, text)), ())


_TENSORS = (
    (r"mask", ("None", f"torch.ones([4, {SIZE}], dtype=torch.bool)",
               f"torch.ones([4, {SIZE}, {SIZE}, {SIZE}])", f"torch.zeros([{SIZE}, {SIZE}])")),
    (r"edge_index|adj_t", (f"torch.randint(0, {SIZE}, [2, 32])",)),
    (r"edge_weight|edge_norm", ("torch.rand([32])",)),
    (r"edge_attr", (f"torch.rand([32, {SIZE}])",)),
    (r"edge_type|rel_type", ("torch.zeros([32], dtype=torch.long)",)),
    (r"^batch$|batch_index|node_type", (f"torch.zeros([{SIZE}], dtype=torch.long)",)),
    (r"len(gth)?s?$", (f"torch.full([4], {SIZE})", f"{SIZE}")),
    (r"ids?$|tokens|index|indices|labels|target|idx|words|caption",
     (f"torch.randint(0, {SIZE}, [4, {SIZE}])", f"torch.randint(0, {SIZE}, [4])")),
    (r"^(h|w|height|width|hw|num_.*|n|size|dim_size)$", (f"{SIZE}", f"({SIZE}, {SIZE})")),
    (r"size|shape", (f"({SIZE}, {SIZE})", f"{SIZE}", f"torch.Size([4, {SIZE}, {SIZE}, {SIZE}])")),
    (r"^(t|time|timesteps?|sigmas?)$", ("torch.rand([4])", "torch.randint(0, 16, [4])")),
)  # fmt: skip
SHAPES = (
    f"4, {SIZE}, {SIZE}, {SIZE}", f"4, {SIZE}, {SIZE}", f"{SIZE}, {SIZE}", "4, 3, 64, 64",
    f"4, {SIZE}, {SIZE}, {SIZE}, {SIZE}", "1, 3, 224, 224", f"4, {SIZE}", f"{SIZE}",
    "2, 1, 32, 32", "1, 3, 8, 112, 112", f"2, 3, 4, {SIZE}, {SIZE}",
)  # fmt: skip
"""What inputs may be shaped like."""


def tensor(shape: str) -> str:
    """Return an expression for numbers from 0 to 1 of a shape."""
    return f"torch.rand([{shape}])"


def inputs_by_name(parameter: Parameter) -> list[str]:
    """Return what a forward's parameter may be given that isn't shaped as the others are."""
    for pattern, texts in _TENSORS:
        if re.search(pattern, parameter.name.lower()):
            return [*texts]
    if re.search(r"\bint\b", parameter.annotation):
        return [str(SIZE), "2"]
    if re.search(r"\bbool\b", parameter.annotation):
        return ["False", "True"]
    if re.search(r"(List|list|Sequence|Tuple|tuple)\[.*Tensor", parameter.annotation):
        return [f"[{tensor(SHAPES[0])}, {tensor(SHAPES[0])}]", f"[{tensor(SHAPES[1])}] * 2"]
    return []


def calls_in(text: str, class_name: str) -> Iterator[Arguments]:
    """Find the calls of a class in code, that are given literals or what torch has."""
    try:
        tree = ast.parse(text)
    except BAD_PYTHON:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == class_name:
            values = [*node.args, *(each.value for each in node.keywords)]
            if (
                values
                and all(map(_stands_alone, values))
                and all(each.arg for each in node.keywords)
            ):
                named = {str(each.arg): ast.unparse(each.value) for each in node.keywords}
                yield Arguments(tuple(map(ast.unparse, node.args)), named)


def inputs_in(text: str) -> list[str]:
    """Find the tensors that an example makes."""
    try:
        tree = ast.parse(text)
    except BAD_PYTHON:
        return []
    return [
        ast.unparse(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and re.fullmatch(r"torch\.(rand\w*|ones|zeros)", ast.unparse(node.func))
        and all(map(_stands_alone, node.args))
    ]


def examples_of(documentation: str) -> str:
    """Return the code of the examples in a docstring (doctest)."""
    lines = [line.strip() for line in documentation.splitlines()]
    return "\n".join(line[4:] for line in lines if line.startswith((">>> ", "... ")))


def sizes_in(message: str) -> list[int]:
    """Return the sizes that an error speaks of."""
    apart = re.sub(r"(?<=\d)x(?=\d)", " ", message)  # 4x16, as of matrices
    found = [int(text) for text in re.findall(r"(?<![\w.-])\d{1,4}(?!\w|\.\d)", apart)]
    return [*dict.fromkeys(size for size in found if 1 <= size <= _LARGEST)][:6]


def words_in(message: str) -> list[str]:
    """Return the words that an error quotes, which may be those it asks for."""
    return [*dict.fromkeys(re.findall(r"['\"`](\w+)['\"`]", message))][:8]


def _stands_alone(value: ast.expr) -> bool:
    names = (node for node in ast.walk(value) if isinstance(node, ast.Name))
    return all(each.id in {"torch", "nn"} for each in names) and not any(
        isinstance(node, (ast.Lambda, ast.Starred, ast.Await, ast.Yield, ast.JoinedStr))
        for node in ast.walk(value)
    )


def combinations(choices: Sequence[Sequence[str]]) -> Iterator[tuple[int, ...]]:
    """Return which choice of each to try, in order: the first of all, one changed, then two.

    Args:
        choices: at least one for each parameter.
    """
    first = [0] * len(choices)
    yield tuple(first)
    ones = [(place, which) for place, own in enumerate(choices) for which in range(1, len(own))]
    ones.sort(key=lambda each: each[1])
    for place, which in ones:
        yield tuple(which if each == place else 0 for each in range(len(choices)))
    for number, (place, which) in enumerate(ones):
        for other, another in ones[:number]:
            if other != place:
                changed = {place: which, other: another}
                yield tuple(changed.get(each, 0) for each in range(len(choices)))
