"""Names of what is measured on each arm, with their units."""

from __future__ import annotations

LATENCY = "latency"
"""Seconds per call."""
MINOR_FAULTS = "minor_faults"
"""Page faults served without I/O, per call."""
KERNEL_TIME = "kernel_time"
"""Processor seconds in the kernel, per call."""
COMPILE_TIME = "compile_time"
"""Seconds of compiling from empty graph caches."""
COMPILE_TIME_WARM = "compile_time_warm"
"""Seconds of compiling with what an earlier process left in the graph caches."""
LOADED_MEMORY = "loaded_memory"
"""Bytes of the loaded model and its inputs."""
PEAK_MEMORY = "peak_memory"
"""Bytes in use at most while the arm is called, beyond the loaded model."""
