"""Which records can be decoded and can't have been made: figures can't be computed from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamometer.results.values.metrics import LATENCY

if TYPE_CHECKING:
    from dynamometer.results.values.records import Measurement, Record

_LARGEST = 1e18
"""Of any sample: bytes that no machine has, seconds that nothing took."""
_LARGEST_SD = 10.0
"""Of logarithms: processes that differ by a factor of 20,000."""
_LATENCIES_S = (1e-9, 1e9)
"""From less than any call takes to 30 years: quotients of these are far from any float's limits."""


def fault_of_record(record: Record) -> str | None:
    """Return why a record can't be of what was measured, or `None` if it can."""
    if record.target is not None and record.target <= 0:
        return "its target is not positive"
    for known in (record.between_sd, *record.between_sds.values()):
        if known.df <= 0 or not 0 <= known.sd_log <= _LARGEST_SD:
            return "no standard deviation between processes is like that"
    in_blocks = {each.metric for each in record.measurements if each.blocks}
    for each in record.measurements:
        fault = _fault(each)
        if fault is None and each.metric in in_blocks and not each.blocks:
            fault = "doesn't say which blocks its samples are of"
        if fault:
            return f"{each.metric} of {each.arm} {fault}"
    return None


def _fault(found: Measurement) -> str | None:
    if not found.samples:
        return "holds no sample"
    if max(map(abs, found.samples)) > _LARGEST:
        return f"holds a sample beyond {_LARGEST:g}"
    low, high = _LATENCIES_S
    is_latency = found.metric.startswith(LATENCY.name)  # alone, isolated, at one of several sizes
    if is_latency and not low <= min(found.samples) <= max(found.samples) <= high:
        return f"holds a sample that is not between {low:g} and {high:g} s"
    return None
