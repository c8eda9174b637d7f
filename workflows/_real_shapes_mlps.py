"""Problems of recommenders and of reinforcement learning: stacks of small linear layers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from _real_shapes_layers import Linear, forward, one_shape, stack
from _real_shapes_tables import FP32, Precision, read_table

from torch_diode.types.shapes import CountedShape


class Load(NamedTuple):
    """A batch size and the precision it is computed in."""

    batch: int
    precision: Precision


class Dlrm(NamedTuple):
    """DLRM on Criteo: 13 dense features through a bottom MLP, 26 categorical, then a top MLP."""

    name: str
    bottom: tuple[int, ...]  # widths from the input on
    top: tuple[int, ...]  # its input: the bottom's output and the products of all pairs
    vectors: int  # one of the dense features, one of each categorical feature
    width: int
    loads: tuple[Load, ...]


class Dcn(NamedTuple):
    """DCN v2: low-rank cross layers, then an MLP."""

    name: str
    inputs: int
    rank: int
    top: tuple[int, ...]
    loads: tuple[Load, ...]


class Mlp(NamedTuple):
    """A plain MLP."""

    name: str
    widths: tuple[int, ...]  # from the input on
    batch: int
    precision: Precision


class Retrieval(NamedTuple):
    """Two towers in training: every query of a batch against every item of it."""

    name: str
    batch: int
    width: int
    precision: Precision


def recommenders() -> Iterator[CountedShape]:
    """DLRM and its interactions, DCN v2, towers, and smaller MLPs."""
    for dlrm in read_table("dlrm", Dlrm):
        layers = (*stack("bottom", dlrm.bottom), *stack("top", dlrm.top))
        for batch, precision in dlrm.loads:
            setting = f"batch {batch}"
            yield from forward(dlrm.name, layers, batch, setting, precision)
            sizes = (dlrm.vectors, dlrm.vectors, dlrm.width)
            origin = f"{dlrm.name}, interaction, {setting}"
            yield one_shape(origin, "bmm", *sizes, "nt", precision, batch)
    for dcn in read_table("dcn", Dcn):
        layers = (
            Linear("cross.V", dcn.rank, dcn.inputs),
            Linear("cross.W", dcn.inputs, dcn.rank, True),
            *stack("over", dcn.top),
        )
        for batch, precision in dcn.loads:
            yield from forward(dcn.name, layers, batch, f"batch {batch}", precision)
    for mlp in read_table("mlps", Mlp):
        layers = stack("mlp", mlp.widths)
        yield from forward(mlp.name, layers, mlp.batch, f"{mlp.batch} rows", mlp.precision)
    for m in read_table("retrieval", Retrieval):
        origin = f"{m.name}, in-batch logits, batch {m.batch}"
        yield one_shape(origin, "mm", m.batch, m.batch, m.width, "nt", m.precision)


class Sac(NamedTuple):
    """Soft actor-critic on a MuJoCo task with the given observations and actions."""

    name: str
    observations: int
    actions: int
    hidden: int
    batches: tuple[int, ...]


class Mbpo(NamedTuple):
    """MBPO's ensemble of dynamics models on a MuJoCo task."""

    name: str
    observations: int
    actions: int
    hidden: int
    models: int
    batches: tuple[int, ...]


def reinforcement() -> Iterator[CountedShape]:
    """SAC's actor and critic; MBPO's ensemble of dynamics models, all in one batched product."""
    for sac in read_table("sac", Sac):
        hidden = (sac.hidden, sac.hidden)
        actor = stack("actor", (sac.observations, *hidden, 2 * sac.actions))
        critic = stack("critic", (sac.observations + sac.actions, *hidden, 1))
        for batch in sac.batches:
            layers = actor if batch == 1 else (*actor, *critic)  # acting needs no critic
            yield from forward(sac.name, layers, batch, f"batch {batch}", FP32)
    for m in read_table("mbpo", Mbpo):
        outputs = 2 * (m.observations + 1)  # mean and variance, of the reward too
        widths = (m.observations + m.actions, m.hidden, m.hidden, outputs)
        for batch in m.batches:
            for layer in stack("ensemble", widths):
                origin = f"{m.name}, {layer.name}, {m.models} models, batch {batch}"
                sizes = (batch, layer.outputs, layer.inputs)
                yield one_shape(origin, "baddbmm", *sizes, "nn", FP32, m.models, "vector")
