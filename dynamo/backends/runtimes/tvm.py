"""TVM's Relax for each of Dynamo's graphs, without tuning: kernels as TVM's own rules make them.

Inputs are shared by DLPack; outputs are TVM's own memory, new at every call.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dynamometer.dynamo.backends.compilers import GraphCompiler, ThroughDynamo
from dynamometer.dynamo.backends.inductor import environment

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch

    from dynamometer.dynamo.backends.programs import Compute, Program


_BIG_CORES = 1
"""Where threads are put: the fastest cores first, as is TVM's own way."""


@dataclass(frozen=True, kw_only=True)
class _Graphs(GraphCompiler):
    """How TVM is set.

    Attributes:
        target: what LLVM compiles for; `native` for this processor with its vector instructions.
    """

    target: str = "native"

    def build(self, program: Program) -> Compute:
        """Return the call of a virtual machine's main function."""
        import torch
        import tvm
        from tvm import relax
        from tvm.relax.frontend.torch import from_exported_program

        from dynamometer.dynamo import state

        assert program.exported is not None
        with state.exporting():
            module = from_exported_program(program.exported, unwrap_unit_return_tuple=False)
        threads = torch.get_num_threads()
        # The pool is made once in a process, of as many; by itself TVM takes half the processors.
        with environment("TVM_NUM_THREADS", str(threads)):
            tvm.get_global_func("runtime.config_threadpool")(_BIG_CORES, threads)
        compiled = tvm.compile(module, target=self._llvm())
        machine = relax.VirtualMachine(compiled, tvm.cpu())
        call = machine["main"]

        def compute(fed: Sequence[torch.Tensor]) -> list[torch.Tensor]:
            from torch.utils.dlpack import from_dlpack

            arrays = [tvm.runtime.from_dlpack(each.detach().contiguous()) for each in fed]
            return [from_dlpack(each) for each in call(*arrays)]

        return compute

    def _llvm(self) -> Any:
        import tvm

        if self.target != "native":
            return tvm.target.Target(self.target)
        from tvm.target import codegen

        processor = codegen.llvm_get_system_cpu()
        return tvm.target.Target({"kind": "llvm", "mcpu": processor})


tvm = ThroughDynamo(
    name="tvm",
    summary="TVM Relax without tuning, for each graph that Dynamo captures; inference",
    devices=("cpu",),
    packages=("tvm",),
    extra="tvm",
    distribution="apache-tvm",
    compiler=_Graphs(),
)
