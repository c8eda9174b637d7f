"""Main process of a cluster machine, with the machine's compiling and timing processes.

The Ray actor starts it and exchanges groups and finished problems with it over a socket. It is a
separate process because the actor has threads and should not be forked; it ends when the socket
closes.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait

from torch_diode.collection.devices import CPU, find_devices
from torch_diode.collection.workers.scheduler import Scheduler
from torch_diode.collection.workers.timing_worker import TimingSettings
from torch_diode.hardware.versions import cpu_libraries, versions
from torch_diode.types.errors import DiodeError
from torch_diode.types.hardware import Hardware


@dataclass(frozen=True)
class NodeSettings:
    """First message to a node: the device to use and the number of processes."""

    device: str | None
    workers: int = 0
    processes: int = 0


@dataclass(frozen=True)
class NodeReady:
    """Reply of a node with its hardware; `TimingSettings` and groups are sent to it next, and it
    answers with timed problems."""

    hardware: Hardware
    devices: int
    versions: Mapping[str, str]
    libraries: Mapping[str, str] = field(default_factory=dict)
    """Those of a CPU."""


def serve(connection: Connection) -> None:
    """Time the groups received until the connection closes."""
    node_settings: NodeSettings = connection.recv()
    devices = find_devices(node_settings.device, node_settings.workers)
    chip = devices.hardware
    libraries = cpu_libraries() if chip.kind == CPU else {}
    connection.send(NodeReady(chip, len(devices.names), versions(), libraries))
    settings: TimingSettings = connection.recv()
    most = os.cpu_count() or 1
    processes = min(node_settings.processes, most) or compiling_processes(chip.kind == CPU)
    while True:
        with Scheduler(settings, devices.names, processes) as scheduler:
            settings = _time(connection, scheduler)


def _time(connection: Connection, scheduler: Scheduler) -> TimingSettings:
    """Time the groups received until other settings are: those of the next thread count."""
    while True:
        wait([connection, *scheduler.connections()], None)
        while connection.poll():
            message = connection.recv()
            if isinstance(message, TimingSettings):
                return message
            scheduler.add_group(message)
        for timed in scheduler.advance():
            connection.send(timed)


def compiling_processes(on_cpu: bool = False) -> int:
    """Number of compiling processes: all cores but one to launch kernels and one to store; all of
    them for a CPU's kernels, since nothing is timed meanwhile."""
    cores = os.cpu_count() or 2
    return cores if on_cpu else max(cores - 2, 1)


def main(connection: Connection) -> None:
    """Serve until the connection closes; a fault is the last message."""
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        try:
            serve(connection)
        except DiodeError as fault:
            connection.send(fault)
