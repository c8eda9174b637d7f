"""A collection on many machines, through Ray: machines pull groups of problems, one output.

Each machine has one worker, which has all its GPUs to itself. This process keeps what comes back
and nothing else: it needs no GPU. The problems of a machine that is lost are done again by
others; a machine that joins later is given work too.
"""

from __future__ import annotations

import importlib
import socket
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch_diode.collection.cluster.node import NodeFinished, NodeReady, NodeSettings
from torch_diode.collection.cluster.ray_actor import ClusterWorker
from torch_diode.collection.groups import Group
from torch_diode.collection.workers.timing_worker import TimingSettings
from torch_diode.types.errors import DiodeError, MissingPartError
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape

_GROUPS_A_NODE = 2
"""One to time, one to compile meanwhile."""
_SECONDS_A_CALL = 2.0
_SECONDS_TO_LOOK = 5.0
"""Between looks for machines that have joined."""
_SECONDS_TO_START = 120.0
_SECONDS_FOR_OTHERS = 20.0
"""Once one machine has answered, the others have so long to be asked what most have."""
_SECONDS_TO_KNOCK = 5.0
_MOST_STARTS = 3


@dataclass(eq=False)
class _Node:
    """A machine: its worker, the call it is at, and the groups it has."""

    name: str
    actor: Any
    call: Any
    hello: NodeReady | None = None
    opened: bool = False
    groups: list[Group] = field(default_factory=list)
    left: dict[MMShape, Group] = field(default_factory=dict)

    def take_back(self) -> Iterator[Group]:
        """Its groups, cut to what is not done."""
        for group in self.groups:
            tasks = tuple(task for task in group.tasks if task[0] in self.left)
            if tasks:
                yield Group(group.name, tasks, group.specs)


class RayCluster:
    """A connection to a Ray cluster, and the machines of it that have the chip in question."""

    def __init__(self, address: str, opening: NodeSettings, say: Callable[[str], None]) -> None:
        self._ray = _ray()
        self._opening = opening
        self._say = say
        self._nodes: dict[str, _Node] = {}
        self._starts: dict[str, int] = {}
        self._looked = -_SECONDS_TO_LOOK
        self._alive = time.monotonic()
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
        self.hello = self._first_hello()

    @property
    def hardware(self) -> Hardware:
        """The chip all timings are of."""
        return self.hello.hardware

    def close(self) -> None:
        """Leave the cluster; its workers end with us."""
        self._ray.shutdown()

    def __len__(self) -> int:
        return len(self._nodes)

    def time(
        self, groups: Sequence[Group], setting: TimingSettings, keep: Callable[[NodeFinished], None]
    ) -> None:
        """Have every problem of these groups timed; each is kept as it comes in."""
        todo = deque(groups)
        done: set[MMShape] = set()
        while todo or any(node.left for node in self._nodes.values()):
            self._start_nodes()
            self._check_alive()
            for node in self._answered(_SECONDS_A_CALL):
                for finished in self._read(node, todo):
                    if finished.problem not in done:
                        done.add(finished.problem)
                        keep(finished)
                self._give(node, todo, setting)

    def _check_alive(self) -> None:
        """Stop when for some time no machine has been there that can time."""
        now = time.monotonic()
        if any(node.hello for node in self._nodes.values()):
            self._alive = now
        if now - self._alive > _SECONDS_TO_START or not self._nodes:
            raise MissingPartError(
                f"--ray: the cluster has no machine left that can time ({self._reason}); all "
                "finished problems are kept: add machines and run the same command again"
            )

    def _start_nodes(self) -> None:
        """A worker on every machine that has none, but not on one that keeps losing it."""
        if time.monotonic() - self._looked < _SECONDS_TO_LOOK:
            return
        self._looked = time.monotonic()
        kind = "CPU" if self._opening.device == "cpu" else "GPU"
        for machine in self._ray.nodes():
            name, amount = machine["NodeID"], machine["Resources"].get(kind, 0)
            known = name in self._nodes or self._starts.get(name, 0) >= _MOST_STARTS
            if machine["Alive"] and amount and not known:
                self._start(name, {"num_cpus": 1} if kind == "CPU" else {"num_gpus": amount})

    def _start(self, name: str, resources: dict[str, float]) -> None:
        strategies = importlib.import_module("ray.util.scheduling_strategies")
        here = strategies.NodeAffinitySchedulingStrategy(name, soft=False)
        actor = self._ray.remote(ClusterWorker).options(scheduling_strategy=here, **resources)
        worker = actor.remote()
        self._starts[name] = self._starts.get(name, 0) + 1
        call = worker.exchange.remote([self._opening], _SECONDS_A_CALL)
        self._nodes[name] = _Node(name, worker, call)

    def _first_hello(self) -> NodeReady:
        """What most machines have: the others have to have the same, or are left out."""
        nothing: deque[Group] = deque()
        end = time.monotonic() + _SECONDS_TO_START
        while any(not node.hello for node in self._nodes.values()) and time.monotonic() < end:
            for node in self._answered(_SECONDS_A_CALL):
                for _ in self._read(node, nothing):
                    pass
                if node.name in self._nodes:
                    self._call(node, [])
                if node.hello is not None:
                    end = min(end, time.monotonic() + _SECONDS_FOR_OTHERS)
        hellos = [node.hello for node in self._nodes.values() if node.hello]
        if not hellos:
            what = self._opening.device or "a GPU"
            raise MissingPartError(
                f"--ray: no machine of the cluster has {what} free ({self._reason}); expected one "
                "at least; start Ray there, or end what holds it"
            )
        kinds = Counter(_kind(hello) for hello in hellos)
        most = max(kinds, key=lambda kind: (kinds[kind], kind))
        return next(hello for hello in hellos if _kind(hello) == most)

    def _answered(self, seconds: float) -> list[_Node]:
        calls = {node.call: node for node in self._nodes.values()}
        ready, _ = self._ray.wait(list(calls), timeout=seconds)
        return [calls[call] for call in ready]

    def _read(self, node: _Node, todo: deque[Group]) -> Iterator[NodeFinished]:
        """What a machine has done; if it is lost, its groups go back to the others."""
        try:
            messages = self._ray.get(node.call)
        except self._ray.exceptions.RayError as fault:
            self._lose(node, todo, fault)
            return
        for message in messages:
            if isinstance(message, DiodeError):
                self._lose(node, todo, message)
                return
            if isinstance(message, NodeReady):
                node.hello = message
            elif isinstance(message, NodeFinished):
                node.left.pop(message.problem, None)
                yield message

    def _lose(self, node: _Node, todo: deque[Group], fault: Exception) -> None:
        """A machine is gone, or cannot go on; what it had not done goes to others."""
        self._reason = str(fault) if isinstance(fault, DiodeError) else type(fault).__name__
        back = list(node.take_back())
        todo.extendleft(reversed(back))
        self._nodes.pop(node.name, None)
        self._looked -= _SECONDS_TO_LOOK
        # Where only its process ended, the worker still holds the machine's devices.
        self._ray.kill(node.actor)
        count = sum(len(group.tasks) for group in back)
        if node.hello is not None:
            self._say(f"lost a machine ({self._reason}); its {count:,} problems go to others")

    def _give(self, node: _Node, todo: deque[Group], setting: TimingSettings) -> None:
        """The next groups for a machine, and the next call to it."""
        if node.name not in self._nodes or node.hello is None:
            if node.name in self._nodes:
                self._call(node, [])
            return
        if _kind(node.hello) != _kind(self.hello):
            self._dismiss(node)
            return
        messages: list[Any] = [] if node.opened else [setting]
        node.opened = True
        node.groups = [g for g in node.groups if any(p in node.left for p, _ in g.tasks)]
        while todo and len(node.groups) < _GROUPS_A_NODE:
            group = todo.popleft()
            node.groups.append(group)
            node.left.update({problem: group for problem, _ in group.tasks})
            messages.append(group)
        self._call(node, messages)

    def _dismiss(self, node: _Node) -> None:
        assert node.hello is not None
        has, wanted = _kind(node.hello), _kind(self.hello)
        self._say(f"a machine is left out: got {' '.join(has)}; expected {' '.join(wanted)}")
        self._starts[node.name] = _MOST_STARTS
        self._ray.kill(node.actor)
        del self._nodes[node.name]

    def _call(self, node: _Node, messages: list[Any]) -> None:
        node.call = node.actor.exchange.remote(messages, _SECONDS_A_CALL)


def _kind(hello: NodeReady) -> tuple[str, ...]:
    """What timings of one output have in common."""
    return (hello.hardware.name, *(f"{name} {text}" for name, text in hello.versions.items()))


def _check_reachable(address: str) -> None:
    """Raise where nobody is at home: Ray itself tries for minutes, and with many words."""
    host, _, port = address.rpartition("//")[2].rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), _SECONDS_TO_KNOCK).close()


def _ray() -> Any:
    try:
        return importlib.import_module("ray")
    except ImportError:
        raise MissingPartError(
            "--ray: Ray is not installed; install it with pip install 'torch-diode[cluster]'"
        ) from None
