import os
import time
from pathlib import Path

import pytest

from tests import samples
from torch_diode.collection.store.journal import DISCARDED
from torch_diode.collection.store.output import (
    FINISHED,
    SETTINGS,
    PartialOutput,
    check_finished,
    check_writable,
    output_file,
    settings_digest,
)
from torch_diode.files.datasets import read_dataset, write_dataset
from torch_diode.types.dataset import Dataset
from torch_diode.types.errors import FileFaultError


def test_a_running_collection_stores_timings_beside_the_output(tmp_path):
    parts = PartialOutput(tmp_path / "t.parquet", {"seed": 1})
    with parts.store({}) as store:
        store.append(samples.dataset())
        assert [p.name for p in tmp_path.iterdir()] == ["t.parquet.parts"]


@pytest.mark.parametrize("form", ["parquet", "msgpack", "json"])
def test_a_finished_collection_leaves_one_file(form, tmp_path):
    parts = PartialOutput(tmp_path / f"t.{form}", {})
    with parts.store({"collected": ("2026-01-01",)}) as store:
        store.append(samples.dataset(), discarded=12)
    dataset = parts.finish(form)
    assert [p.name for p in tmp_path.iterdir()] == [f"t.{form}"]
    assert read_dataset(tmp_path / f"t.{form}") == dataset
    told = {**samples.dataset().provenance, DISCARDED: ("12",)}
    assert dataset == Dataset(samples.dataset().table, told)


def test_a_rerun_with_the_same_settings_continues(tmp_path):
    for _ in range(2):
        PartialOutput(tmp_path / "t.parquet", {"seed": 1, "sizes": (1, 2)}).close()


@pytest.mark.parametrize(
    ("now", "message"),
    [
        ({"seed": 2}, "collected with seed 1; got 2"),
        ({}, "seed 1; got not given"),
        ({"seed": 1, "square": True}, "square not given; got true"),
    ],
)
def test_other_settings_are_refused(now, message, tmp_path):
    PartialOutput(tmp_path / "t.parquet", {"seed": 1}).close()
    with pytest.raises(FileFaultError, match=message):
        PartialOutput(tmp_path / "t.parquet", now)
    PartialOutput(tmp_path / "t.parquet", {"seed": 1}).close()


def test_two_collectors_do_not_share_an_output(tmp_path):
    first = PartialOutput(tmp_path / "t.parquet", {})
    with pytest.raises(FileFaultError, match="another collection is writing here"):
        PartialOutput(tmp_path / "t.parquet", {})
    first.close()
    PartialOutput(tmp_path / "t.parquet", {}).close()


def test_a_worker_that_outlives_a_killed_collector_holds_no_lock(tmp_path):
    """The journal must be recovered although a forked worker of the collector is alive."""
    ready, wait = os.pipe(), os.pipe()
    collector = os.fork()
    if collector == 0:
        parts = PartialOutput(tmp_path / "t.parquet", {})
        store = parts.store({})
        store.append(samples.dataset())
        if os.fork() == 0:
            os.write(ready[1], b"x")
            os.close(wait[1])
            os.read(wait[0], 1)
            os._exit(0)
        time.sleep(60)
        os._exit(0)
    os.close(wait[0])
    os.read(ready[0], 1)
    os.kill(collector, 9)
    os.waitpid(collector, 0)
    try:
        parts = PartialOutput(tmp_path / "t.parquet", {})
        with parts.store({}) as store:
            assert len(store.done()) == len(samples.dataset().problems)
    finally:
        os.close(wait[1])


@pytest.mark.parametrize(
    ("name", "form", "expected"),
    [
        ("a.parquet", None, ("a.parquet", "parquet")),
        ("a.json", "json", ("a.json", "json")),
        ("folder", None, ("folder/timings.parquet", "parquet")),
        ("folder", "msgpack", ("folder/timings.msgpack", "msgpack")),
    ],
)
def test_an_output_is_a_file_or_a_directory(name, form, expected):
    assert output_file(Path(name), form) == (Path(expected[0]), expected[1])


@pytest.mark.parametrize(("name", "form"), [("a.csv", None), ("a.json", "parquet")])
def test_an_ending_of_another_format_is_refused(name, form):
    with pytest.raises(FileFaultError, match="got the ending"):
        output_file(Path(name), form)


def test_an_existing_output_needs_overwrite(tmp_path):
    (tmp_path / "a.json").touch()
    with pytest.raises(FileFaultError, match="give --overwrite"):
        check_writable(tmp_path / "a.json", overwrite=False)
    check_writable(tmp_path / "a.json", overwrite=True)


@pytest.mark.parametrize("content", [b"{", b"\xff\xfe{", b"[" * 100_000, b"[]", b'{"a": NaN}'])
def test_damaged_settings_are_one_sentence_and_leave_the_timings(content, tmp_path):
    (tmp_path / "a.parquet.parts").mkdir()
    (tmp_path / "a.parquet.parts" / SETTINGS).write_bytes(content)
    write_dataset(samples.dataset(), tmp_path / "a.parquet.parts" / "shard-1.parquet")
    with pytest.raises(FileFaultError, match=r"got invalid settings; .* the timings .* are whole"):
        PartialOutput(tmp_path / "a.parquet", {})
    assert len(read_dataset(tmp_path / "a.parquet.parts")) == len(samples.dataset())


def test_somebody_elses_directory_is_refused_and_stays(tmp_path):
    (tmp_path / "a.parquet.parts").mkdir()
    (tmp_path / "a.parquet.parts" / "thesis.tex").write_text("mine")
    with pytest.raises(FileFaultError, match="no collection made, with 'thesis"):
        PartialOutput(tmp_path / "a.parquet", {})
    assert (tmp_path / "a.parquet.parts" / "thesis.tex").read_text() == "mine"


def test_a_directory_and_an_output_below_a_file_are_refused(tmp_path):
    (tmp_path / "m.pt").mkdir()
    with pytest.raises(FileFaultError, match="got a directory; expected the name of a file"):
        check_writable(tmp_path / "m.pt", overwrite=True)
    (tmp_path / "file").touch()
    with pytest.raises(FileFaultError, match="choose another --model"):
        check_writable(tmp_path / "file" / "m.pt", overwrite=True, option="--model")


def test_a_finished_output_is_recognised_by_its_settings(tmp_path):
    settings = {"seed": 1, "m": (0.5, 1.0)}
    provenance = {FINISHED: (settings_digest(settings),)}
    write_dataset(Dataset(samples.dataset().table, provenance), tmp_path / "a.json")
    check_finished(tmp_path / "a.json", {"m": [0.5, 1.0], "seed": 1})
    with pytest.raises(FileFaultError, match="not known to be collected with these options"):
        check_finished(tmp_path / "a.json", {**settings, "seed": 2})
