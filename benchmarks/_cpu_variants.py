"""Ways to run a model on a CPU: each prepares it and returns its call; the first call compiles.

A variant has a process of its own, so that settings stay as they are set here.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from _models import Case
from _models_calls import step_of
from torch import Tensor, nn

Call = Callable[[], list[Tensor]]
PLAIN, DIODE, FROZEN, DIODE_FROZEN = "plain", "torch-diode", "frozen", "torch-diode, frozen"
TUNED, EAGER, AGAIN = "max-autotune, frozen", "eager", "plain again"


@dataclass(frozen=True)
class Compiled:
    """`torch.compile` in a mode, with or without freezing and torch-diode."""

    mode: str | None = None
    freezing: bool = False
    diode: bool = False

    def __call__(self, case: Case, threads: int) -> Call:
        """Set everything for this process; compile at the first call."""
        import torch._inductor.config as inductor_config

        inductor_config.freezing = self.freezing
        # Compiles something first, which includes imports and whatever a compiler starts.
        warm = torch.compile(nn.Linear(64, 48), mode=self.mode)
        with torch.no_grad():
            warm(torch.randn(32, 64))
        module: Any = torch.compile(case.module, mode=self.mode, dynamic=False)
        return step_of(Case(module, case.inputs, case.train))


def eager(case: Case, threads: int) -> Call:
    """Without a compiler."""
    return step_of(case)


def zentorch(case: Case, threads: int) -> Call:
    """AMD's plugin for torch.compile, with freezing: without it results were wrong."""
    import torch._inductor.config as inductor_config
    import zentorch  # noqa: F401

    inductor_config.freezing = True
    module: Any = torch.compile(case.module, backend="zentorch", dynamic=False)
    return step_of(Case(module, case.inputs, case.train))


def onnxruntime(case: Case, threads: int) -> Call:
    """ONNX Runtime on a model exported by torch; export and session count as compile time."""
    import onnxruntime as ort

    state: list[Any] = []

    def session() -> Any:
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        # Its threads would otherwise spin into the next variant's turn.
        options.add_session_config_entry("session.force_spinning_stop", "1")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            program = torch.onnx.export(case.module, case.inputs, dynamo=True, verbose=False)
            program.save(path, external_data=True)
            return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def call() -> list[Tensor]:
        if not state:
            state.append(session())
        names = [given.name for given in state[0].get_inputs()]
        values = [value.numpy() for value in case.inputs]
        return [torch.from_numpy(state[0].run(None, dict(zip(names, values, strict=True)))[0])]

    return call


def openvino(case: Case, threads: int) -> Call:
    """OpenVINO in float32, which it would lower by itself; conversion counts as compile time."""
    import openvino as ov

    state: list[Any] = []
    hints = {"INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"}

    def call() -> list[Tensor]:
        if not state:
            with torch.no_grad():
                model = ov.convert_model(case.module, example_input=case.inputs)
            limits = {**hints, "INFERENCE_NUM_THREADS": threads}
            state.append(ov.Core().compile_model(model, "CPU", limits))
        return [torch.from_numpy(state[0]([value.numpy() for value in case.inputs])[0])]

    return call


VARIANTS: dict[str, Callable[[Case, int], Call]] = {
    EAGER: eager,
    PLAIN: Compiled(),
    AGAIN: Compiled(),
    DIODE: Compiled(diode=True),
    FROZEN: Compiled(freezing=True),
    DIODE_FROZEN: Compiled(freezing=True, diode=True),
    TUNED: Compiled(mode="max-autotune", freezing=True),
}
"""Those of torch alone and torch-diode. Plain runs twice: the difference is noise."""
PEERS: dict[str, Callable[[Case, int], Call]] = {
    "onnxruntime": onnxruntime,
    "openvino": openvino,
    "zentorch": zentorch,
}
TRAINS = (EAGER, PLAIN, AGAIN, DIODE)
"""Freezing needs constant weights, and what else there is here only infers."""
