"""The main process of a cluster machine, without a cluster."""

import time
from typing import Any

import pytest

from torch_diode.collection import plan
from torch_diode.collection.cluster.node import NodeReady, NodeSettings
from torch_diode.collection.cluster.ray_actor import ClusterWorker, NodeGoneError
from torch_diode.collection.kernels.cpp import CpuKernels
from torch_diode.collection.workers.scheduler import TimedProblem
from torch_diode.collection.workers.timing_worker import TimingSettings
from torch_diode.hardware import detect
from torch_diode.hardware.versions import cpu_libraries, versions
from torch_diode.types.errors import MissingPartError
from torch_diode.types.problem import MMShape

PROBLEMS = [MMShape("mm", 8 * i, 64, 64, dtype="float32") for i in range(1, 6)]


def receive(worker: ClusterWorker, messages: list[Any], count: int) -> list[Any]:
    received: list[Any] = worker.exchange(messages, 1)
    deadline = time.monotonic() + 90
    while len(received) < count:
        assert time.monotonic() < deadline
        received += worker.exchange([], 1)
    return received


def test_a_node_reports_its_hardware_and_times_groups():
    worker = ClusterWorker()
    (ready,) = receive(worker, [NodeSettings("cpu")], 1)
    assert ready == NodeReady(detect("cpu"), 1, versions(), cpu_libraries())
    settings = TimingSettings(CpuKernels(), detect("cpu"), versions())
    groups = plan.plan(PROBLEMS, plan.libraries(detect("cpu")), CpuKernels(), 2)
    messages = receive(worker, [settings, *groups], len(PROBLEMS))
    assert all(isinstance(m, TimedProblem) and len(m.dataset) >= 2 for m in messages)
    assert sorted(message.problem for message in messages) == sorted(PROBLEMS)


def test_a_node_without_the_device_reports_why_and_ends():
    worker = ClusterWorker()
    (fault,) = receive(worker, [NodeSettings("tpu")], 1)
    assert isinstance(fault, MissingPartError)
    assert "'tpu'" in str(fault)
    with pytest.raises(NodeGoneError):
        receive(worker, [], 1)
