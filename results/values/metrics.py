"""Names of what is measured on each arm, with their units."""

from __future__ import annotations

BATCH_SIZE = "batch_size"
"""Samples in a batch."""
LATENCY = "latency"
"""Seconds per call."""
LATENCY_ALONE = "latency_alone"
"""Likewise, before any later arm was built."""
LATENCY_ISOLATED = "latency_isolated"
"""Likewise, in a process of the arm's own; arms took turns, and a block is one turn of each."""
MINOR_FAULTS = "minor_faults"
"""Page faults served without I/O, per call."""
KERNEL_TIME = "system_time"
"""Processor seconds in the kernel, per call."""
COMPILE_TIME = "compile_time"
"""Seconds of compiling from empty graph caches."""
COMPILE_TIME_WARM = "compile_time_warm"
"""Seconds of compiling with what an earlier process left in the graph caches."""
COMPILE_PHASES = {
    "dynamo": "compile_dynamo_time",
    "aot_autograd": "compile_aot_autograd_time",
    "backend": "compile_backend_time",
}
"""Seconds of compiling by what they were spent in, where torch reports it."""
LOADED_MEMORY = "loaded_memory"
"""Bytes of the loaded model and its inputs."""
RESIDUE_MEMORY = "residue_memory"
"""Bytes that compiling and the first calls leave behind, beyond the loaded model."""
CALLS_MEMORY = "calls_memory"
"""Bytes in use at most during a call, beyond the loaded model and what is left behind.

Before these two were told apart their sum was recorded, as `peak_memory`."""
