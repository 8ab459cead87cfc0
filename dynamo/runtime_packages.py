"""Packages that compute what backends compile: their versions change figures and decisions."""

from __future__ import annotations

RUNTIME_PACKAGES = (
    "apache-tvm",
    "onnxruntime",
    "onnxruntime-gpu",
    "openvino",
    "tensorrt",
    "torch_tensorrt",
    "triton",
)
"""As they are called by `importlib.metadata`."""
