"""A sweep that test_workers.py runs in a process of its own.

    python tests/gpu/faulty_kernel_run.py OUTPUT {faulty,two}

`faulty`: one config's kernel writes out of bounds. `two`: two timing processes on one GPU.
"""

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import triton
import triton.language as tl

from torch_diode import Candidate, Candidates, MMShape, TritonGEMMConfig
from torch_diode.collection.devices import find_devices
from torch_diode.collection.kernels.launch import Launcher
from torch_diode.collection.kernels.library import KernelLibrary, KernelSpec
from torch_diode.collection.kernels.operands import Operands
from torch_diode.collection.plan import Group, Task
from torch_diode.collection.store.journal import TimingStore
from torch_diode.collection.sweep import Sweep
from torch_diode.collection.sweep_run import SweepRun
from torch_diode.collection.timers.timer import Launch
from torch_diode.collection.workers.timing_worker import TimingSettings
from torch_diode.integration.capture.template_source import template_source

FAR = 1 << 40


@triton.jit
def write_out_of_bounds(pointer, offset):
    tl.store(pointer + offset, 1.0)


class FaultyLauncher(Launcher):
    def bind(self, spec: KernelSpec, tensors: Operands) -> Launch:
        if spec.config.block_m == 128:
            return lambda: write_out_of_bounds[(1,)](tensors.out.view(-1), FAR)
        return super().bind(spec, tensors)


@dataclass(frozen=True)
class FaultySettings(TimingSettings):
    def sweep(self, outcomes: Mapping[KernelSpec, Any], seed: int) -> Sweep:
        sweep = super().sweep(outcomes, seed)
        sweep.launcher = FaultyLauncher(self.library)
        return sweep


def main() -> None:
    output, kind = sys.argv[1:]
    devices = find_devices("cuda:0")
    library = KernelLibrary(template_source, devices.hardware.units)
    configs = [Candidate("triton::mm", TritonGEMMConfig(m, 32, 32)) for m in (32, 64, 128)]
    candidates = Candidates.of([Candidate("aten"), *configs])
    tasks: list[Task] = [(MMShape("mm", 64 * i, 256, 256), candidates) for i in range(1, 41)]
    groups = [Group.of("mm", tasks, library)]
    releases = {"torch": torch.__version__.partition("+")[0]}
    faulty = kind == "faulty"
    settings = (FaultySettings if faulty else TimingSettings)(library, devices.hardware, releases)
    sweep_run = SweepRun(groups, settings, devices.names * (1 if faulty else 2))
    with TimingStore(Path(output)) as store:
        sweep_run.run(store, 4, time.monotonic() + 200, print)
    assert not torch.cuda.is_initialized(), "the parent must not touch CUDA"
    print("lost", len(sweep_run.lost), sweep_run.lost)


if __name__ == "__main__":
    main()
