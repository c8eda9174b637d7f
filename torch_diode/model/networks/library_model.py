"""Network for CPUs: one output per candidate, from features of the problem alone.

A CPU has a handful of candidates, most of them libraries with kernels of their own choosing, so one
pass gives the times of all. Several small networks are trained together: their mean is the
prediction, and their spread tells where the data say little.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from torch_diode.model.features.names import CPU_NAMES
from torch_diode.model.networks import (
    DOUBT_FEATURES,
    LIBRARY,
    MAX_LOG_SIGMA,
    MIN_LOG_SIGMA,
    SPREAD_FLOOR,
)
from torch_diode.model.networks.timing_models import Standardise, TimingNetwork, build_network

CPU_WIDTH = len(CPU_NAMES)
_DOUBT_COLUMNS = [CPU_NAMES.index(name) for name in DOUBT_FEATURES]


class LibraryTimingModel(nn.Module):
    """Ensemble that predicts log(time / roofline) of every label.

    `labels` are the candidates of the outputs, as text; they are kept in the metadata of a file.
    """

    kind = LIBRARY

    def __init__(self, labels: int, hidden: int = 96, layers: int = 2, members: int = 8) -> None:
        super().__init__()
        self.shape = {"hidden": hidden, "layers": layers, "members": members, "labels": labels}
        self.labels: tuple[str, ...] = ()
        self.problem_norm = Standardise(CPU_WIDTH)
        sizes = ((CPU_WIDTH, hidden), *[(hidden, hidden)] * (layers - 1), (hidden, labels))
        self.weights = nn.ParameterList(
            [nn.Parameter(torch.randn(members, i, o) * (2 / i) ** 0.5) for i, o in sizes]
        )
        self.biases = nn.ParameterList([nn.Parameter(torch.zeros(members, 1, o)) for _, o in sizes])
        self.uncertainty = nn.Parameter(torch.zeros(2 + len(DOUBT_FEATURES), labels))
        """Log deviation of each label: a constant, and the slopes by the members' spread and by
        what kind of problem it is."""

    def forward(self, problem: Tensor, dropout: float = 0.0) -> Tensor:
        """Predict with each member: members by problems by labels."""
        x = self.problem_norm(problem).expand(len(self.weights[0]), -1, -1)
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            x = nn.functional.silu(torch.baddbmm(bias, x, weight))
            x = nn.functional.dropout(x, dropout, self.training)
        return torch.baddbmm(self.biases[-1], x, self.weights[-1])

    def log_sigma(self, problem: Tensor, members: Tensor) -> Tensor:
        """Predict the log deviation of each label's error, without what all labels share, which
        changes no choice: problems by labels."""
        own = members - members.mean(2, keepdim=True)
        spread = torch.log(own.std(0, correction=0) + SPREAD_FLOOR)
        kind = self.problem_norm(problem)[:, _DOUBT_COLUMNS]
        result = self.uncertainty[0] + self.uncertainty[1] * spread + kind @ self.uncertainty[2:]
        clamped: Tensor = result.clamp(MIN_LOG_SIGMA, MAX_LOG_SIGMA)
        return clamped


Network = TimingNetwork | LibraryTimingModel


def build_any(kind: str, shape: Mapping[str, Any]) -> Network:
    """Build an untrained network of any kind."""
    return LibraryTimingModel(**shape) if kind == LIBRARY else build_network(kind, shape)
