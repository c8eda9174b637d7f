"""A machine of a cluster: its own process, with the machine's compiling and timing processes.

The cluster's worker starts it and speaks with it over a socket: groups in, finished problems out.
It is apart from that worker because a process full of threads should not be forked from, and it
ends when the socket closes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait

from torch_diode.collection.devices import find_devices
from torch_diode.collection.workers.scheduler import Scheduler
from torch_diode.collection.workers.timing_worker import TimingSettings
from torch_diode.hardware.versions import versions
from torch_diode.types.dataset import Dataset
from torch_diode.types.errors import DiodeError
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape


@dataclass(frozen=True)
class NodeSettings:
    """The first message to a node: which of its devices to use, and how many processes."""

    device: str | None
    workers: int = 0
    processes: int = 0


@dataclass(frozen=True)
class NodeReady:
    """A node's answer: what it has. It is then told the `Setting`, and given groups."""

    hardware: Hardware
    devices: int
    versions: Mapping[str, str]


@dataclass(frozen=True)
class NodeFinished:
    """A problem that is done; without timings where it could not be."""

    problem: MMShape
    dataset: Dataset | None


def serve(connection: Connection) -> None:
    """Time the groups that come in until nobody is there to tell."""
    opening: NodeSettings = connection.recv()
    found = find_devices(opening.device, opening.workers)
    connection.send(NodeReady(found.hardware, len(found.names), versions()))
    setting: TimingSettings = connection.recv()
    processes = opening.processes or compiling_processes()
    with Scheduler(setting, found.names, processes) as shop:
        while True:
            wait([connection, *shop.handles()], None)
            while connection.poll():
                shop.give(connection.recv())
            for timed in shop.advance():
                connection.send(NodeFinished(timed.problem, timed.dataset))


def compiling_processes() -> int:
    """So many that a core is left for launching kernels and one for keeping timings."""
    return max((os.cpu_count() or 2) - 2, 1)


def main() -> None:
    """Serve on the file descriptor that was handed over."""
    connection = Connection(int(sys.argv[1]))
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        try:
            serve(connection)
        except DiodeError as fault:
            connection.send(fault)
