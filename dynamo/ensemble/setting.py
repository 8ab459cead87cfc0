"""What decisions hold for, as it is in this process."""

from __future__ import annotations

import torch

from dynamometer.dynamo.device import open_device
from dynamometer.dynamo.processor import processor_name
from dynamometer.dynamo.runtime_packages import RUNTIME_PACKAGES, installed
from dynamometer.results.values.cases import MatmulPrecision
from dynamometer.results.values.decisions import Setting
from dynamometer.results.values.workers import Allocator


def setting_of(
    device: str,
    precision: MatmulPrecision = MatmulPrecision.HIGHEST,
    allocator: Allocator = Allocator.KEEP,
) -> Setting:
    """Return the setting of this process.

    Args:
        device: type of the device.
        precision: of float32 matrix products, as a run asked for it: a model may set another.
        allocator: that the run times under, also where this process has another, as for memory.
    """
    return Setting(
        device=device,
        device_name=open_device(device).name,
        threads=torch.get_num_threads(),
        processor=processor_name(),
        versions={"torch": str(torch.__version__), **installed(RUNTIME_PACKAGES)},
        matmul_precision=precision,
        allocator=allocator,
    )
