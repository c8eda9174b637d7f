"""`collect --ray` and `tune --ray` on a real cluster of several nodes, as a person runs them."""

import os
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import torch_diode
from torch_diode import MMShape, OperationShapeSet
from torch_diode.files.datasets import read_dataset
from torch_diode.files.shape_sets import write_shapes
from torch_diode.files.tables import read_table
from torch_diode.hardware import detect
from torch_diode.integration.tuned_tables import tuned_folder
from torch_diode.tuning.measuring import cluster_of
from torch_diode.types.errors import HardwareMismatchError

PROBLEMS = 60
MANY = ("--output", "t.parquet", "--num-shapes", "100", "--max-size", "256", "--chunk-size", "4")


@pytest.fixture(scope="module")
def cluster():
    """A head that times nothing, and two nodes that do."""
    pytest.importorskip("ray")
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    from ray.cluster_utils import Cluster

    cluster = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 0, "include_dashboard": False, "object_store_memory": 10**8},
    )
    yield cluster
    cluster.shutdown()


def add_node(cluster: Any) -> Any:
    return cluster.add_node(num_cpus=1, object_store_memory=10**8)


def collect(address: str) -> list[str]:
    return ["--seed", "1", "--device", "cpu", "collect", "--libraries", "--ray", address, *MANY]


def kept(parts: Path) -> int:
    """Bytes of finished problems on disk."""
    return sum(file.stat().st_size for file in parts.glob(".journal-*"))


def wait_for(parts: Path, size: int) -> None:
    deadline = time.monotonic() + 90
    while kept(parts) < size:
        assert time.monotonic() < deadline, "nothing came in"
        time.sleep(0.05)


def wait_for_shard(parts: Path) -> None:
    """Until what a killed collector left is taken over."""
    deadline = time.monotonic() + 90
    while not list(parts.glob("shard-*.parquet")) or len(list(parts.glob(".journal-*"))) > 1:
        assert time.monotonic() < deadline, "nothing was recovered"
        time.sleep(0.05)


def started(address: str, cwd: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "torch_diode", *collect(address)],
        cwd=cwd,
        env={**os.environ, "TORCH_DIODE": "0"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_a_killed_collector_continues_and_a_lost_nodes_problems_are_done_again(cluster, tmp_path):
    nodes = add_node(cluster), add_node(cluster)
    parts = tmp_path / "t.parquet.parts"
    with started(cluster.address, tmp_path) as collector:
        wait_for(parts, 20_000)
        collector.kill()
    with started(cluster.address, tmp_path) as collector:
        wait_for_shard(parts)
        wait_for(parts, 20_000)
        cluster.remove_node(nodes[1], allow_graceful=False)
        output, errors = collector.communicate(timeout=120)
    cluster.remove_node(nodes[0])
    assert collector.returncode == 0, output + errors
    assert " problems are done" in output
    assert "lost a machine" in output
    assert [path.name for path in tmp_path.iterdir()] == ["t.parquet"]
    dataset = read_dataset(tmp_path / "t.parquet")
    assert len(dataset.problems) == 100
    assert dataset.texts("status") == ["ok"]


@pytest.mark.slow
def test_a_program_is_tuned_by_several_machines_of_which_one_is_lost(
    cluster, tmp_path, monkeypatch
):
    monkeypatch.setenv("TORCH_DIODE_HOME", str(tmp_path / "home"))
    problems = [MMShape("mm", 64, 64 + 8 * i, 512, dtype="float32") for i in range(PROBLEMS)]
    write_shapes(OperationShapeSet.of(problems), tmp_path / "shapes.json")
    command = ("--device", "cpu", "tune", "--ray", cluster.address, "--shapeset", "shapes.json")
    nodes = add_node(cluster), add_node(cluster)
    with subprocess.Popen(
        [sys.executable, "-m", "torch_diode", *command, "--quick"],
        cwd=tmp_path,
        env={**os.environ, "TORCH_DIODE": "0"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as tuning:
        wait_for(tuned_folder(detect("cpu")).path / "timings.parquet.parts", 5_000)
        cluster.remove_node(nodes[1], allow_graceful=False)
        output, errors = tuning.communicate(timeout=120)
    with pytest.raises(HardwareMismatchError, match=r"--ray: got machines of .*; expected abacus"):
        cluster_of(cluster.address, replace(detect("cpu"), name="abacus"), print)
    cluster.remove_node(nodes[0])
    assert tuning.returncode == 0, output + errors
    assert "lost a machine" in output
    assert f"{PROBLEMS} problems measured now, 0 before" in output
    (table,) = (tmp_path / "home").rglob("table.json")
    assert len(read_table(table)) == PROBLEMS


def test_a_cluster_without_a_machine_that_times_is_refused(cluster, tmp_path):
    ended = torch_diode(*collect(cluster.address), cwd=tmp_path)  # Ray itself may print, too.
    assert ended.returncode == 2
    assert "no machine of the cluster has cpu free" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_where_no_cluster_answers_it_says_so(tmp_path):
    pytest.importorskip("ray")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
    ended = torch_diode(*collect(address), cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert f"--ray: got '{address}'; no cluster answers there" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_without_ray_it_says_what_to_install(tmp_path):
    """In an environment whose Ray cannot be imported."""
    (tmp_path / "ray.py").write_text("raise ImportError('not here')\n")
    ended = torch_diode(*collect("auto"), cwd=tmp_path, PYTHONPATH=str(tmp_path))
    assert ended.returncode == 2
    assert "pip install 'torch-diode[cluster]'" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
