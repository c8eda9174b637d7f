"""The networks: log(time / roofline) of Triton configs and of ATen.

A ranking asks about one problem and a thousand candidates, so a network is built of a part that
sees the problem alone, may be as wide as it likes and runs once, and a part that runs for every
candidate and has to be narrow. ATen has a head of its own: its time has nothing to do with configs
and jumps where the library changes kernels; splits of K, which the library runs as a batch, have
one too. The doubt says how far off all of them are.
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
from torch_diode.model.networks.limits import (
    APART_FLOOR,
    APART_SHIFT,
    LEAST_DOUBT,
    MOST_DEVIATIONS,
    MOST_DOUBT,
)
from torch_diode.types.errors import InvalidValueError

PROBLEM_WIDTH = len(PROBLEM_NAMES)
VENDOR_WIDTH = len(VENDOR_NAMES)
SPLIT_WIDTH = len(SPLIT_NAMES)
CONFIG_WIDTH = len(CONFIG_NAMES) + len(JOINT_NAMES)

_SPLIT_HIDDEN = 32


class Standardise(nn.Module):
    """Features to mean 0 and deviation 1, as they were in training."""

    mean: Tensor
    scale: Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("scale", torch.ones(width))

    def fit(self, features: Tensor) -> None:
        """Take mean and deviation from these; a constant column becomes zero."""
        self.mean.copy_(features.mean(0))
        deviation = features.std(0)
        self.scale.copy_(torch.where(deviation > 1e-4, 1 / deviation.clamp(min=1e-4), 0.0))

    def forward(self, features: Tensor) -> Tensor:
        """Clipped to what training may have met."""
        standard = (features - self.mean) * self.scale
        return standard.clamp(-MOST_DEVIATIONS, MOST_DEVIATIONS)


class VendorHead(nn.Module):
    """Several small networks on the features of one library call; their mean is the prediction,
    and their disagreement a hint of how sure it is.

    `shift` is set after training: the best of a thousand predicted configs looks better than it is
    (the luckiest error wins), the one prediction of ATen does not, and the shift makes the two
    comparable. `trained` is 1 once the head has seen any timing: until then it must not be asked.
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
        """Each network's own prediction: members by rows. An `offset` is added to the first
        layer's units."""
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
        """log(time / roofline), one a row."""
        return self.members(problem, call).mean(0) + self.shift


class Uncertainty(nn.Module):
    """The log deviation of the errors of a problem's predictions: of its configs, of ATen, and of
    splits of K. A tiny network, for it is fitted to the errors on problems kept from training."""

    def __init__(self, hidden: int = 16) -> None:
        super().__init__()
        self.first = nn.Linear(PROBLEM_WIDTH + 1, hidden)
        self.second = nn.Linear(hidden, 3)

    def begin(self, typical: list[float]) -> None:
        """Start from the same deviations for every problem."""
        with torch.no_grad():
            self.second.weight.zero_()
            self.second.bias.copy_(torch.log(torch.tensor(typical)))

    @staticmethod
    def inputs(problem: Tensor, members: Tensor) -> Tensor:
        """Standardised problem features, and how far ATen's members are apart."""
        apart = torch.log(members.std(0, correction=0) + APART_FLOOR) + APART_SHIFT
        return torch.cat([problem, apart[:, None]], dim=1)

    def forward(self, inputs: Tensor) -> Tensor:
        """Problems by three."""
        result: Tensor = self.second(torch.tanh(self.first(inputs)))
        return result.clamp(LEAST_DOUBT, MOST_DOUBT)


class MatmulTimingModel(nn.Module):
    """The plain one: a feed-forward network on problem, config and joint features.

    The first layer's share of the problem is computed once a problem and added to each of its
    candidates, which is the same as feeding both in together.
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
        self.doubt = Uncertainty()

    def forward(self, problem: Tensor, config: Tensor, group: Tensor) -> Tensor:
        """log(time / roofline) of each config; `group` says which row of `problem` is its."""
        x = self.config_in(self.config_norm(config))
        x = torch.relu(x + repeat_per_candidate(self.problem_in(self.problem_norm(problem)), group))
        for layer in self.hidden:
            x = torch.relu(layer(x))
        result: Tensor = self.out(x).squeeze(1)
        return result


class DeepMatmulTimingModel(nn.Module):
    """The deep one: a wide network reads the problem and sets, for each residual block that the
    candidates run through, a scale and a shift of every hidden unit; so each problem has a network
    of its own, at the cost of a narrow one. A glance is a second output, right after the first
    layer: enough to tell which of a thousand candidates are worth the other layers."""

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
        self.setters = nn.ModuleList(nn.Linear(encoder, 2 * hidden) for _ in range(layers + 1))
        self.config_in = nn.Linear(CONFIG_WIDTH, hidden, bias=False)
        self.first = nn.ModuleList(nn.Linear(hidden, hidden, bias=False) for _ in range(layers))
        self.second = nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(layers))
        self.out = nn.Linear(hidden, 1)
        self.problem_out = nn.Linear(encoder, hidden + 1)
        self.glance_out = nn.Linear(encoder, hidden + 1)
        self.aten = VendorHead(PROBLEM_WIDTH + VENDOR_WIDTH, aten_hidden, aten_members, aten_layers)
        self.split = VendorHead(PROBLEM_WIDTH + SPLIT_WIDTH, _SPLIT_HIDDEN)
        self.doubt = Uncertainty()
        for setter in (*self.setters, self.problem_out, self.glance_out):
            nn.init.normal_(setter.weight, std=0.02)
            nn.init.zeros_(setter.bias)
        for name, weight in self.second.named_parameters():
            if name.endswith("weight"):
                nn.init.normal_(weight, std=0.01)

    def forward(self, problem: Tensor, config: Tensor, group: Tensor) -> Tensor:
        """log(time / roofline) of each config; `group` says which row of `problem` is its."""
        return self._through(*self._enter(problem, config, group), group)

    def both(self, problem: Tensor, config: Tensor, group: Tensor) -> tuple[Tensor, Tensor]:
        """The same, and what a glance says of it, which alone is left open to be trained."""
        with torch.no_grad():
            code, x = self._enter(problem, config, group)
            predicted = self._through(code, x, group)
        ends = self.glance_out(code)
        return predicted, (x * repeat_per_candidate(ends[:, :-1], group)).sum(
            1
        ) + repeat_per_candidate(ends[:, -1], group)

    def _enter(self, problem: Tensor, config: Tensor, group: Tensor) -> tuple[Tensor, Tensor]:
        """The problems' code, and the first units of each config."""
        code = self.problem_norm(problem)
        for layer in self.encoder:
            code = torch.relu(layer(code))
        x = self.config_in(self.config_norm(config))
        return code, torch.relu(self._set(0, x, code, group))

    def _through(self, code: Tensor, x: Tensor, group: Tensor) -> Tensor:
        for number, (first, second) in enumerate(zip(self.first, self.second, strict=True), 1):
            x = x + second(torch.relu(self._set(number, first(x), code, group)))
        ends = self.problem_out(code)
        weights = self.out.weight[0] + ends[:, :-1]
        own = self.out.bias + ends[:, -1]
        result: Tensor = (x * repeat_per_candidate(weights, group)).sum(1) + repeat_per_candidate(
            own, group
        )
        return result

    def _set(self, number: int, x: Tensor, code: Tensor, group: Tensor) -> Tensor:
        scale, shift = self.setters[number](code).chunk(2, dim=1)
        result: Tensor = x * repeat_per_candidate(1 + scale, group) + repeat_per_candidate(
            shift, group
        )
        return result


def repeat_per_candidate(rows: Tensor, group: Tensor) -> Tensor:
    """Each problem's row for each of its configs. As indexing, and faster to differentiate."""
    return rows.index_select(0, group)


TimingNetwork = MatmulTimingModel | DeepMatmulTimingModel
NETWORKS: dict[str, type[MatmulTimingModel] | type[DeepMatmulTimingModel]] = {
    network.kind: network for network in (MatmulTimingModel, DeepMatmulTimingModel)
}


def build_network(kind: str, shape: Mapping[str, Any] | None = None) -> TimingNetwork:
    """A fresh network of a kind, `base` or `deep`."""
    if kind not in NETWORKS:
        raise InvalidValueError(
            f"model type: got {kind!r:.40}; expected one of {', '.join(NETWORKS)}"
        )
    return NETWORKS[kind](**(shape or {}))
