"""Collection on several machines through Ray.

Each machine has one Ray actor, which reserves all its GPUs. This process assigns groups of problems
and stores the results; it needs no GPU. The problems of a lost machine go to others; a machine that
joins later gets work too.
"""

from __future__ import annotations

import importlib
import math
import socket
import time
from collections import Counter, deque
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from torch_diode.collection.cluster.node import NodeReady, NodeSettings
from torch_diode.collection.cluster.ray_actor import ClusterWorker
from torch_diode.collection.devices import CPU, is_cpu
from torch_diode.collection.plan import Group
from torch_diode.collection.workers.scheduler import TimedProblem
from torch_diode.collection.workers.timing_worker import TimingSettings
from torch_diode.types.errors import DiodeError, MissingPartError
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape

_GROUPS_PER_NODE = 2
"""One to time, one to compile meanwhile."""
_SECONDS_PER_CALL = 2.0
_SECONDS_BETWEEN_CHECKS = 5.0
"""Between checks for machines that have joined."""
_SECONDS_TO_START = 120.0
_SECONDS_FOR_OTHERS = 20.0
"""After the first machine has answered, to wait for others before choosing the chip."""
_SECONDS_TO_CONNECT = 5.0
_MOST_STARTS = 3


@dataclass(eq=False)
class _Node:
    """A machine: its actor, the call in progress, and its groups."""

    name: str
    actor: Any
    call: Any
    ready: NodeReady | None = None
    has_settings: bool = False
    groups: list[Group] = field(default_factory=list)

    def reduce_groups(self, done: Container[MMShape]) -> None:
        """Drop what is done from its groups."""
        left = [
            replace(g, tasks=tuple(t for t in g.tasks if t[0] not in done)) for g in self.groups
        ]
        self.groups = [group for group in left if group.tasks]


class RayCluster:
    """Connection to a Ray cluster, and its machines with the chip to time on."""

    def __init__(self, address: str, settings: NodeSettings, note: Callable[[str], None]) -> None:
        self._ray = _ray()
        self._settings = settings
        self._note = note
        self._nodes: dict[str, _Node] = {}
        self._todo: deque[Group] = deque()
        self._done: set[MMShape] = set()
        self._starts: dict[str, int] = {}
        self._last_check = -_SECONDS_BETWEEN_CHECKS
        self._last_ready = time.monotonic()
        self._reason = "none has it"
        try:
            _check_reachable(address)
            self._ray.init(address, log_to_driver=False, logging_level="ERROR")
        except (OSError, ValueError, RuntimeError) as fault:
            reason = " ".join(str(fault).split())
            raise MissingPartError(
                f"--ray: got {address!r}; no cluster answers there ({reason:.120}); start one "
                "with `ray start --head`"
            ) from None
        self._start_nodes()
        self.ready = self._majority()

    @property
    def hardware(self) -> Hardware:
        """Chip of all timings."""
        return self.ready.hardware

    def close(self) -> None:
        """Disconnect; the actors end with this process."""
        self._ray.shutdown()

    def __len__(self) -> int:
        return len(self._nodes)

    def time(
        self,
        groups: Sequence[Group],
        settings: TimingSettings,
        keep: Callable[[TimedProblem], None],
        deadline: float = math.inf,
    ) -> None:
        """Time every problem of these groups, or until the deadline (`time.monotonic`); `keep` is
        called with each result."""
        self._todo, self._done = deque(groups), set()
        for node in self._nodes.values():
            node.has_settings = False
        while self._todo or any(node.groups for node in self._nodes.values()):
            if time.monotonic() > deadline:
                return
            self._start_nodes()
            self._check_alive()
            for node in self._answered(_SECONDS_PER_CALL):
                for timed in self._read(node):
                    if timed.problem not in self._done:
                        self._done.add(timed.problem)
                        keep(timed)
                node.reduce_groups(self._done)
                self._assign(node, settings)

    def _check_alive(self) -> None:
        """Raise if no machine has been able to time for a while."""
        now = time.monotonic()
        if any(node.ready for node in self._nodes.values()):
            self._last_ready = now
        if now - self._last_ready > _SECONDS_TO_START or not self._nodes:
            raise MissingPartError(
                f"--ray: the cluster has no machine left that can time ({self._reason}); all "
                "finished problems are kept: add machines and run the same command again"
            )

    def _start_nodes(self) -> None:
        """Start an actor on every machine that has none, except those that keep losing it."""
        if time.monotonic() - self._last_check < _SECONDS_BETWEEN_CHECKS:
            return
        self._last_check = time.monotonic()
        kind = "CPU" if is_cpu(self._settings.device) else "GPU"
        for machine in self._ray.nodes():
            name, amount = machine["NodeID"], machine["Resources"].get(kind, 0)
            skip = name in self._nodes or self._starts.get(name, 0) >= _MOST_STARTS
            if machine["Alive"] and amount and not skip:
                self._start(name, {f"num_{kind.lower()}s": amount})

    def _start(self, name: str, resources: dict[str, float]) -> None:
        strategies = importlib.import_module("ray.util.scheduling_strategies")
        affinity = strategies.NodeAffinitySchedulingStrategy(name, soft=False)
        actor = self._ray.remote(ClusterWorker).options(scheduling_strategy=affinity, **resources)
        worker = actor.remote()
        self._starts[name] = self._starts.get(name, 0) + 1
        call = worker.exchange.remote([self._settings], _SECONDS_PER_CALL)
        self._nodes[name] = _Node(name, worker, call)

    def _majority(self) -> NodeReady:
        """Chip and versions that most machines have; machines with others are not used."""
        end = time.monotonic() + _SECONDS_TO_START
        while any(not node.ready for node in self._nodes.values()) and time.monotonic() < end:
            for node in self._answered(_SECONDS_PER_CALL):
                list(self._read(node))
                if node.name in self._nodes:
                    self._call(node, [])
                if node.ready is not None:
                    end = min(end, time.monotonic() + _SECONDS_FOR_OTHERS)
        answers = [node.ready for node in self._nodes.values() if node.ready]
        if not answers:
            what = self._settings.device or "a GPU"
            raise MissingPartError(
                f"--ray: no machine of the cluster has {what} free ({self._reason}); expected one "
                "at least; start Ray there, or stop the program that uses it"
            )
        kinds = Counter(_kind(ready) for ready in answers)
        most = max(kinds, key=lambda kind: (kinds[kind], kind))
        return next(ready for ready in answers if _kind(ready) == most)

    def _answered(self, seconds: float) -> list[_Node]:
        calls = {node.call: node for node in self._nodes.values()}
        ready, _ = self._ray.wait(list(calls), timeout=seconds)
        return [calls[call] for call in ready]

    def _read(self, node: _Node) -> Iterator[TimedProblem]:
        """Yield finished problems of a machine; if it is lost, put its groups back."""
        try:
            messages = self._ray.get(node.call)
        except self._ray.exceptions.RayError as fault:
            self._remove(node, fault)
            return
        for message in messages:
            if isinstance(message, DiodeError):
                self._remove(node, message)
                return
            if isinstance(message, NodeReady):
                node.ready = message
            elif isinstance(message, TimedProblem):
                yield message

    def _remove(self, node: _Node, fault: Exception) -> None:
        """Remove a machine that is gone or cannot continue; put its remaining groups back."""
        self._reason = str(fault) if isinstance(fault, DiodeError) else type(fault).__name__
        node.reduce_groups(self._done)
        self._todo.extendleft(reversed(node.groups))
        self._nodes.pop(node.name, None)
        self._last_check -= _SECONDS_BETWEEN_CHECKS
        # If only its process ended, the actor still holds the machine's devices.
        self._ray.kill(node.actor)
        count = sum(len(group.tasks) for group in node.groups)
        if node.ready is not None:
            self._note(f"lost a machine ({self._reason}); its {count:,} problems go to others")

    def _assign(self, node: _Node, settings: TimingSettings) -> None:
        """Send a machine its next groups."""
        if node.name not in self._nodes or node.ready is None:
            if node.name in self._nodes:
                self._call(node, [])
            return
        if _kind(node.ready) != _kind(self.ready):
            self._reject(node)
            return
        messages: list[Any] = [] if node.has_settings else [settings]
        node.has_settings = True
        while self._todo and len(node.groups) < _GROUPS_PER_NODE:
            node.groups.append(self._todo.popleft())
            messages.append(node.groups[-1])
        self._call(node, messages)

    def _reject(self, node: _Node) -> None:
        assert node.ready is not None
        has, wanted = _kind(node.ready), _kind(self.ready)
        self._note(f"a machine is not used: got {' '.join(has)}; expected {' '.join(wanted)}")
        self._starts[node.name] = _MOST_STARTS
        self._ray.kill(node.actor)
        del self._nodes[node.name]

    def _call(self, node: _Node, messages: list[Any]) -> None:
        node.call = node.actor.exchange.remote(messages, _SECONDS_PER_CALL)


def _kind(ready: NodeReady) -> tuple[str, ...]:
    """Chip and versions, the same for all timings of one output."""
    chip = ready.hardware
    cores = (f"{chip.units} cores",) if chip.kind == CPU else ()
    return (chip.name, *cores, *(f"{name} {text}" for name, text in ready.versions.items()))


def _check_reachable(address: str) -> None:
    """Raise at once if nothing listens there: Ray itself retries for minutes."""
    host, _, port = address.rpartition("//")[2].rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), _SECONDS_TO_CONNECT).close()


def _ray() -> Any:
    try:
        return importlib.import_module("ray")
    except ImportError:
        raise MissingPartError(
            "--ray: Ray is not installed; install it with pip install 'torch-diode[cluster]'"
        ) from None
