"""The examples, run as far as this machine allows."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import SHIPPED_TIMINGS
from tests.scripts import ROOT, programs_in
from torch_diode.files.datasets import read_dataset, write_dataset
from torch_diode.files.tables import read_table

EXAMPLES = ROOT / "examples"
PROBLEM = "mm:128x2048x512:bfloat16:nt"

needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")


@pytest.fixture
def run(tmp_path):
    """Run a script with `torch-diode` and `python` of this environment on its path."""
    programs = programs_in(tmp_path / "bin")

    def running(*command, path=os.environ["PATH"], **environ):
        own = {"CUDA_VISIBLE_DEVICES": "", "PATH": f"{programs}{os.pathsep}{path}", **environ}
        return subprocess.run(
            [str(part) for part in command],
            cwd=ROOT,
            env={**os.environ, **own},
            capture_output=True,
            text=True,
            check=False,
        )

    return running


def test_a_custom_heuristic_conforms_and_leaves_the_rest_to_the_model(run):
    ended = run(sys.executable, EXAMPLES / "custom_heuristic.py")
    assert ended.returncode == 0, ended.stderr
    conforms, few, many = ended.stdout.splitlines()
    assert conforms.endswith("conforms")
    assert "mm:8x4096x4096:bfloat16:nt: few_rows: triton::mm 16x" in few
    assert "mm:512x4096x4096:bfloat16:nt: model: " in many


@needs_bash
@pytest.mark.parametrize("with_jq", [True, False])
def test_a_table_is_edited_with_jq_or_without(run, tmp_path, with_jq):
    path = os.environ["PATH"]
    if with_jq and shutil.which("jq") is None:
        pytest.skip("jq is not installed")
    if not with_jq:
        tools = tmp_path / "tools"
        tools.mkdir()
        for name in ("bash", "sh", "env"):
            (tools / name).symlink_to(shutil.which(name) or name)
        path = str(tools)
    ended = run("bash", EXAMPLES / "edit_table.sh", path=path, OUTPUT_DIR=str(tmp_path))
    assert ended.returncode == 0, ended.stderr
    before, after = (rows(tmp_path / name) for name in ("table.json", "edited.json"))
    first, second, *others = before.pop(PROBLEM)
    assert after.pop(PROBLEM) == [second, first, *others]
    assert after == before
    assert json.loads((tmp_path / "inductor_table.json").read_text())


def rows(path: Path) -> dict[str, list[str]]:
    return {
        problem.key: [str(entry.candidate) for entry in entries]
        for _, problem, entries in read_table(path)
    }


@pytest.mark.slow
def test_a_hugging_face_model_is_compiled(run):
    ended = run(sys.executable, EXAMPLES / "hugging_face.py")
    if importlib.util.find_spec("transformers") is None:
        assert ended.returncode == 1
        assert ended.stderr.strip().endswith(
            "transformers is not installed; pip install transformers"
        )
        return
    assert ended.returncode == 0, ended.stderr
    assert "with torch-diode: compiled in" in ended.stdout


@needs_bash
@pytest.mark.slow
def test_a_fleet_collects_into_one_file(run, tmp_path):
    pytest.importorskip("ray")
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    from ray.cluster_utils import Cluster

    few = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": 10**8}
    cluster = Cluster(initialize_head=True, head_node_args=few)
    try:
        cluster.add_node(num_cpus=1, object_store_memory=10**8)
        ended = run(
            "bash", EXAMPLES / "fleet_collection.sh", "collect", cluster.address,
            DEVICE="cpu", NUM_SHAPES="3", OPERATIONS="mm bmm", DTYPES="float32",
            EXTRA="--max-size 64", OUTPUT=str(tmp_path / "timings.parquet"),
        )  # fmt: skip
    finally:
        cluster.shutdown()
    assert ended.returncode == 0, ended.stderr
    assert set(read_dataset(tmp_path / "timings.parquet").texts("op")) == {"mm", "bmm"}


@needs_bash
def test_the_fleet_script_prints_its_usage(run):
    ended = run("bash", EXAMPLES / "fleet_collection.sh")
    assert ended.returncode == 2
    assert "fleet_collection.sh collect HEAD_HOST:6379" in ended.stdout


@needs_bash
@pytest.mark.slow
def test_the_vendors_check_trains_validates_and_reports(run, tmp_path):
    whole = read_dataset(SHIPPED_TIMINGS)
    number = whole.problems.ids
    write_dataset(whole.take(number % 600 == 0), tmp_path / "train.parquet")
    write_dataset(whole.take(number % 3000 == 1), tmp_path / "validation.parquet")
    ended = run(
        "bash", EXAMPLES / "vendor_ci/check.sh",
        OUTPUT_DIR=str(tmp_path), NUM_EPOCHS="1", LARGEST_REGRET="9",
    )  # fmt: skip
    assert "2 passed" in ended.stdout, ended.stderr
    assert (tmp_path / "report.html").is_file()
    scores = json.loads((tmp_path / "scores.json").read_text())["scores"]
    assert ended.returncode == (1 if scores["worse_than_aten"] else 0), ended.stderr


@pytest.mark.parametrize(
    ("regret", "worse", "text"),
    [(1.02, [], "limit 1.0500"), (1.06, [], "at most 1.0500"), (1.02, ["op=mm"], "better in: op=")],
)
def test_the_gate_fails_above_the_limit_or_behind_aten(run, tmp_path, regret, worse, text):
    scores = {"model": {"all": [{"geomean": regret}]}, "worse_than_aten": worse}
    (tmp_path / "scores.json").write_text(json.dumps({"scores": scores}))
    ended = run(sys.executable, EXAMPLES / "vendor_ci/gate.py", tmp_path / "scores.json", "1.05")
    assert ended.returncode == (1 if regret > 1.05 or worse else 0)
    assert text in ended.stdout + ended.stderr


def test_the_vendors_workflow_sets_existing_variables():
    yaml = pytest.importorskip("yaml")
    workflow = (EXAMPLES / "vendor_ci/kernel-selection.yml").read_text(encoding="utf-8")
    (job,) = yaml.safe_load(workflow)["jobs"].values()
    commands = [step["run"] for step in job["steps"] if "run" in step]
    assert "bash ci/check.sh" in commands
    variables = {
        line.split("=")[0]
        for line in (EXAMPLES / "vendor_ci/check.sh").read_text().splitlines()
        if ":-" in line
    }
    assert set(job["env"]) <= variables
