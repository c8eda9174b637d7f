"""Networks that predict log(time / roofline) of Triton configs and of ATen.

A ranking is of one problem and a thousand candidates, so a network has a wide part that reads the
problem and runs once, and a narrow part that runs for every candidate. ATen has a head of its own:
its time is unrelated to configs and jumps where the library changes kernels; so have splits of K,
which the library runs as a batch. The uncertainty estimates the error of all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from torch_diode.model.features.names import (
    CONFIG_NAMES,
    JOINT_NAMES,
    PROBLEM_NAMES,
    SPLIT_NAMES,
    VENDOR_NAMES,
)
from torch_diode.model.networks import (
    CLIP_DEVIATIONS,
    MAX_LOG_SIGMA,
    MIN_LOG_SIGMA,
    SPREAD_FLOOR,
    SPREAD_SHIFT,
)
from torch_diode.types.errors import InvalidValueError

PROBLEM_WIDTH = len(PROBLEM_NAMES)
VENDOR_WIDTH = len(VENDOR_NAMES)
SPLIT_WIDTH = len(SPLIT_NAMES)
CONFIG_WIDTH = len(CONFIG_NAMES) + len(JOINT_NAMES)

_SPLIT_HIDDEN = 32


class Standardise(nn.Module):
    """Standardise features by their mean and deviation in training."""

    mean: Tensor
    scale: Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("scale", torch.ones(width))

    def fit(self, features: Tensor) -> None:
        """Set mean and deviation to those of `features`; a constant column becomes zero."""
        self.mean.copy_(features.mean(0))
        deviation = features.std(0)
        self.scale.copy_(torch.where(deviation > 1e-4, 1 / deviation.clamp(min=1e-4), 0.0))

    def forward(self, features: Tensor) -> Tensor:
        """Standardise and clip."""
        standard = (features - self.mean) * self.scale
        return standard.clamp(-CLIP_DEVIATIONS, CLIP_DEVIATIONS)


class VendorHead(nn.Module):
    """Ensemble of small networks on the features of one library call; its mean is the prediction,
    and its spread an input of the uncertainty.

    `shift` is set after training: the best of a thousand predicted configs looks better than it is
    (the luckiest error wins), the one prediction of ATen does not, and the shift makes the two
    comparable. `trained` is 1 once the head has seen any timing; until then it is not used.
    """

    shift: Tensor
    trained: Tensor

    def __init__(self, width: int, hidden: int, members: int = 6, layers: int = 2) -> None:
        super().__init__()
        self.norm = Standardise(width)
        self.register_buffer("shift", torch.zeros(1))
        self.register_buffer("trained", torch.zeros(1))
        sizes = ((width, hidden), *[(hidden, hidden)] * (layers - 1), (hidden, 1))
        self.weights = nn.ParameterList(
            [nn.Parameter(torch.randn(members, i, o) * (2 / i) ** 0.5) for i, o in sizes]
        )
        self.biases = nn.ParameterList([nn.Parameter(torch.zeros(members, 1, o)) for _, o in sizes])

    def members(
        self, problem: Tensor, call: Tensor, dropout: float = 0.0, offset: Tensor | None = None
    ) -> Tensor:
        """Predict with each member: members by rows. An `offset` is added to the units of the first
        layer."""
        x = self.norm(torch.cat([problem, call], dim=1)).expand(len(self.weights[0]), -1, -1)
        for number, (weight, bias) in enumerate(
            zip(self.weights[:-1], self.biases[:-1], strict=True)
        ):
            x = torch.baddbmm(bias, x, weight)
            if number == 0 and offset is not None:
                x = x + offset
            x = nn.functional.dropout(torch.relu(x), dropout, self.training)
        return torch.baddbmm(self.biases[-1], x, self.weights[-1]).squeeze(2)

    def forward(self, problem: Tensor, call: Tensor) -> Tensor:
        """Predict log(time / roofline) of each row."""
        return self.members(problem, call).mean(0) + self.shift


class Uncertainty(nn.Module):
    """Log deviation of the errors of a problem's predictions: of its configs, of ATen, and of
    splits of K. A tiny network: it is fitted to the errors on held-out problems."""

    def __init__(self, hidden: int = 16) -> None:
        super().__init__()
        self.first = nn.Linear(PROBLEM_WIDTH + 1, hidden)
        self.second = nn.Linear(hidden, 3)

    def initialise(self, typical: list[float]) -> None:
        """Initialise to the same deviations for every problem."""
        with torch.no_grad():
            self.second.weight.zero_()
            self.second.bias.copy_(torch.log(torch.tensor(typical)))

    @staticmethod
    def inputs(problem: Tensor, members: Tensor) -> Tensor:
        """Concatenate standardised problem features and the spread of ATen's members."""
        spread = torch.log(members.std(0, correction=0) + SPREAD_FLOOR) + SPREAD_SHIFT
        return torch.cat([problem, spread[:, None]], dim=1)

    def forward(self, inputs: Tensor) -> Tensor:
        """Predict log deviations: problems by three."""
        result: Tensor = self.second(torch.tanh(self.first(inputs)))
        return result.clamp(MIN_LOG_SIGMA, MAX_LOG_SIGMA)


class MatmulTimingModel(nn.Module):
    """Feed-forward network on problem, config and joint features.

    The problem's part of the first layer is computed once per problem and added to each of its
    candidates, which equals concatenating the features.
    """

    kind = "base"

    def __init__(
        self,
        hidden: int = 96,
        layers: int = 2,
        aten_hidden: int = 128,
        aten_layers: int = 3,
        aten_members: int = 4,
    ) -> None:
        super().__init__()
        self.shape = {
            "hidden": hidden,
            "layers": layers,
            "aten_hidden": aten_hidden,
            "aten_layers": aten_layers,
            "aten_members": aten_members,
        }
        self.problem_norm = Standardise(PROBLEM_WIDTH)
        self.config_norm = Standardise(CONFIG_WIDTH)
        self.problem_in = nn.Linear(PROBLEM_WIDTH, hidden)
        self.config_in = nn.Linear(CONFIG_WIDTH, hidden, bias=False)
        self.hidden = nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(layers - 1))
        self.out = nn.Linear(hidden, 1)
        self.aten = VendorHead(PROBLEM_WIDTH + VENDOR_WIDTH, aten_hidden, aten_members, aten_layers)
        self.split = VendorHead(PROBLEM_WIDTH + SPLIT_WIDTH, _SPLIT_HIDDEN)
        self.uncertainty = Uncertainty()

    def forward(self, problem: Tensor, config: Tensor, group: Tensor) -> Tensor:
        """Predict log(time / roofline) of each config; `group` is its row of `problem`."""
        x = self.config_in(self.config_norm(config))
        x = torch.relu(x + repeat_per_candidate(self.problem_in(self.problem_norm(problem)), group))
        for layer in self.hidden:
            x = torch.relu(layer(x))
        result: Tensor = self.out(x).squeeze(1)
        return result


class DeepMatmulTimingModel(nn.Module):
    """Residual network with feature-wise modulation (FiLM): a wide encoder reads the problem and
    sets, for each residual block of the candidates, a scale and a shift of every hidden unit, so
    that each problem has a network of its own at the cost of a narrow one. The prefilter, a second
    output after the first layer, tells which candidates are worth the residual blocks."""

    kind = "deep"

    def __init__(
        self,
        hidden: int = 96,
        layers: int = 2,
        aten_hidden: int = 128,
        aten_layers: int = 3,
        aten_members: int = 4,
        encoder: int = 192,
    ) -> None:
        super().__init__()
        self.shape = {
            "hidden": hidden,
            "layers": layers,
            "aten_hidden": aten_hidden,
            "aten_layers": aten_layers,
            "aten_members": aten_members,
            "encoder": encoder,
        }
        self.problem_norm = Standardise(PROBLEM_WIDTH)
        self.config_norm = Standardise(CONFIG_WIDTH)
        self.encoder = nn.ModuleList(
            [nn.Linear(PROBLEM_WIDTH, encoder), nn.Linear(encoder, encoder)]
        )
        self.film_layers = nn.ModuleList(nn.Linear(encoder, 2 * hidden) for _ in range(layers + 1))
        self.config_in = nn.Linear(CONFIG_WIDTH, hidden, bias=False)
        self.first = nn.ModuleList(nn.Linear(hidden, hidden, bias=False) for _ in range(layers))
        self.second = nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(layers))
        self.out = nn.Linear(hidden, 1)
        self.problem_out = nn.Linear(encoder, hidden + 1)
        self.prefilter_out = nn.Linear(encoder, hidden + 1)
        self.aten = VendorHead(PROBLEM_WIDTH + VENDOR_WIDTH, aten_hidden, aten_members, aten_layers)
        self.split = VendorHead(PROBLEM_WIDTH + SPLIT_WIDTH, _SPLIT_HIDDEN)
        self.uncertainty = Uncertainty()
        for layer in (*self.film_layers, self.problem_out, self.prefilter_out):
            nn.init.normal_(layer.weight, std=0.02)
            nn.init.zeros_(layer.bias)
        for name, weight in self.second.named_parameters():
            if name.endswith("weight"):
                nn.init.normal_(weight, std=0.01)

    def forward(self, problem: Tensor, config: Tensor, group: Tensor) -> Tensor:
        """Predict log(time / roofline) of each config; `group` is its row of `problem`."""
        return self._blocks(*self._first_layer(problem, config, group), group)

    def with_prefilter(
        self, problem: Tensor, config: Tensor, group: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Predict without gradients, and with the prefilter, which alone can be trained."""
        with torch.no_grad():
            code, x = self._first_layer(problem, config, group)
            predicted = self._blocks(code, x, group)
        ends = self.prefilter_out(code)
        return predicted, _per_problem_output(x, ends[:, :-1], ends[:, -1], group)

    def _first_layer(self, problem: Tensor, config: Tensor, group: Tensor) -> tuple[Tensor, Tensor]:
        """Encode the problems, and compute the first units of each config."""
        code = self.problem_norm(problem)
        for layer in self.encoder:
            code = torch.relu(layer(code))
        x = self.config_in(self.config_norm(config))
        return code, torch.relu(self._modulate(0, x, code, group))

    def _blocks(self, code: Tensor, x: Tensor, group: Tensor) -> Tensor:
        for number, (first, second) in enumerate(zip(self.first, self.second, strict=True), 1):
            x = x + second(torch.relu(self._modulate(number, first(x), code, group)))
        ends = self.problem_out(code)
        weights, bias = self.out.weight[0] + ends[:, :-1], self.out.bias + ends[:, -1]
        return _per_problem_output(x, weights, bias, group)

    def _modulate(self, number: int, x: Tensor, code: Tensor, group: Tensor) -> Tensor:
        scale, shift = self.film_layers[number](code).chunk(2, dim=1)
        return x * repeat_per_candidate(1 + scale, group) + repeat_per_candidate(shift, group)


def repeat_per_candidate(rows: Tensor, group: Tensor) -> Tensor:
    """Repeat each problem's row for each of its configs; faster to differentiate than indexing."""
    return rows.index_select(0, group)


def _per_problem_output(x: Tensor, weights: Tensor, bias: Tensor, group: Tensor) -> Tensor:
    """Apply each problem's own output layer to its configs."""
    output = (x * repeat_per_candidate(weights, group)).sum(1)
    return output + repeat_per_candidate(bias, group)


TimingNetwork = MatmulTimingModel | DeepMatmulTimingModel
NETWORKS: dict[str, type[MatmulTimingModel] | type[DeepMatmulTimingModel]] = {
    network.kind: network for network in (MatmulTimingModel, DeepMatmulTimingModel)
}


def build_network(kind: str, shape: Mapping[str, Any] | None = None) -> TimingNetwork:
    """Build an untrained network of a kind, `base` or `deep`."""
    if kind not in NETWORKS:
        raise InvalidValueError(
            f"model type: got {kind!r:.40}; expected one of {', '.join(NETWORKS)}"
        )
    return NETWORKS[kind](**(shape or {}))
