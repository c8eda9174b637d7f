"""A machine's process, started as the cluster's worker starts it, without a cluster."""

from __future__ import annotations

import time
from typing import Any

import pytest

from torch_diode.collection import plan
from torch_diode.collection.cluster.node import NodeFinished, NodeReady, NodeSettings
from torch_diode.collection.cluster.ray_actor import ClusterWorker, NodeGoneError
from torch_diode.collection.timers.cpu import cpu_library
from torch_diode.collection.workers.timing_worker import TimingSettings
from torch_diode.hardware import detect
from torch_diode.hardware.versions import versions
from torch_diode.types.errors import MissingPartError
from torch_diode.types.problem import MMShape

PROBLEMS = [MMShape("mm", 8 * i, 64, 64, dtype="float32") for i in range(1, 6)]


def answers(worker: ClusterWorker, messages: list[Any], count: int) -> list[Any]:
    found: list[Any] = worker.exchange(messages, 1)
    deadline = time.monotonic() + 90
    while len(found) < count:
        assert time.monotonic() < deadline
        found += worker.exchange([], 1)
    return found


def test_a_node_says_what_it_has_and_times_what_it_is_given():
    worker = ClusterWorker()
    (hello,) = answers(worker, [NodeSettings("cpu", workers=2)], 1)
    assert hello == NodeReady(detect("cpu"), 2, versions())
    setting = TimingSettings(cpu_library(), detect("cpu"), versions())
    groups = plan.plan(PROBLEMS, plan.vendor_only, cpu_library(), 2)
    found = answers(worker, [setting, *groups], len(PROBLEMS))
    assert all(isinstance(message, NodeFinished) and len(message.dataset) == 1 for message in found)
    assert sorted(message.problem for message in found) == sorted(PROBLEMS)


def test_a_node_that_cannot_says_why_and_is_gone():
    worker = ClusterWorker()
    (fault,) = answers(worker, [NodeSettings("tpu")], 1)
    assert isinstance(fault, MissingPartError)
    assert "'tpu'" in str(fault)
    with pytest.raises(NodeGoneError):
        answers(worker, [], 1)
