"""JUnit XML: a test suite for each suite, a test case for each arm of each case.

What was measured is in properties. Wrong results are failures; whatever kept an arm from having
results is an error; what was skipped, or not run as the run was interrupted, is skipped.
Source: the schema of Jenkins' xUnit plugin, which CI systems read.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from dynamometer.results.exports.export import Document
from dynamometer.results.exports.figures import figures
from dynamometer.results.reports.texts import printable
from dynamometer.results.values.cases import BASELINE
from dynamometer.results.values.records import Status

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dynamometer.results.exports.export import Ending, StoredRun
    from dynamometer.results.exports.figures import Figure
    from dynamometer.results.values.cases import Case

_WRONG = frozenset({Status.FAIL, Status.FAIL_ACCURACY, Status.NONDETERMINISTIC})


def export(run: StoredRun) -> list[Document]:
    """Return one document."""
    measured: defaultdict[tuple[str, str], list[Figure]] = defaultdict(list)
    for figure in figures(run):
        measured[figure.case.id, figure.arm].append(figure)
    suite = ET.Element("testsuite")
    for ending in run.endings():
        suite.append(_tested(ending, measured[ending.case.id, ending.arm]))
    for case in run.missing:
        for arm in case.arms[1:] or case.arms:
            test = _test(case, arm)
            ET.SubElement(test, "skipped", {"message": "not run: the run was interrupted"})
            suite.append(test)
    _describe(suite, run)
    suites = ET.Element("testsuites")
    suites.append(suite)
    ET.indent(suites)
    text = ET.tostring(suites, encoding="unicode")
    return [Document("junit.xml", f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n')]


def _describe(suite: ET.Element, run: StoredRun) -> None:
    manifest = run.manifest
    tags = [part.tag for test in suite for part in test]
    seconds = sum(sum(record.seconds.values()) for record in run.records)
    attributes = {
        "name": manifest.plan.suite,
        "tests": str(len(suite)),
        "failures": str(tags.count("failure")),
        "errors": str(tags.count("error")),
        "skipped": str(tags.count("skipped")),
        "time": f"{seconds:.3f}",
        "timestamp": manifest.created_at.partition("+")[0],
        "hostname": manifest.environment.machine,
    }
    for key, value in attributes.items():
        suite.set(key, _clean(value))
    about = {"command": manifest.command, "run_id": manifest.run_id}
    packages = sorted(manifest.environment.packages.items())
    suite.insert(0, _properties([*about.items(), *packages]))


def _tested(ending: Ending, measured: Iterable[Figure]) -> ET.Element:
    test = _test(ending.case, ending.arm)
    values = [
        (".".join(filter(None, (figure.size, name))), text)
        for figure in measured
        for name, text in _values(figure)
    ]
    test.append(_properties([("command", ending.command), *values]))
    outcome = ending.outcome
    if outcome.status is Status.PASS:
        return test
    tag = "failure" if outcome.status in _WRONG else "error"
    tag = "skipped" if outcome.status is Status.SKIP else tag
    message = outcome.line if outcome.status is not Status.SKIP else outcome.reason or ""
    found = ET.SubElement(test, tag, {"message": _clean(message)})
    if tag != "skipped":
        found.set("type", _clean(outcome.status))
        parts = [outcome.reason, outcome.detail, f"to repeat: {ending.command}"]
        found.text = _clean("\n\n".join(part for part in parts if part))
    return test


def _values(figure: Figure) -> list[tuple[str, str]]:
    name = figure.column.name
    found = [(name, figure.value), (f"{name}_low", figure.low), (f"{name}_high", figure.high)]
    doubt = [(f"{name}_doubt", figure.doubt)] if figure.doubt else []
    return [*((key, f"{value:.6g}") for key, value in found if value is not None), *doubt]


def _test(case: Case, arm: str) -> ET.Element:
    backend = arm if arm != BASELINE else "eager"
    classname = f"{case.suite}.{case.mode}.{backend}"
    return ET.Element("testcase", {"classname": _clean(classname), "name": _clean(case.label)})


def _properties(pairs: Iterable[tuple[str, str]]) -> ET.Element:
    found = ET.Element("properties")
    for name, value in pairs:
        ET.SubElement(found, "property", {"name": _clean(name), "value": _clean(value)})
    return found


def _clean(text: str) -> str:
    """Return text without what a terminal would obey, which has all that XML 1.0 can't write."""
    return printable(text, instead="\ufffd", kept="\t\n\r")
