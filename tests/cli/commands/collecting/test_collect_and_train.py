import shutil

import pytest

from tests.cli.program import inside, told_off
from tests.conftest import QUICK_TRAINING as QUICK


@pytest.fixture
def folder(timings, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(timings / "train.parquet", tmp_path / "t.parquet")
    shutil.copy(timings / "apart.msgpack", tmp_path / "apart.msgpack")
    return tmp_path


FILES = ("collect-and-train", "--output", "t.parquet", "--model", "m.pt")


def test_data_that_is_there_is_trained_on_and_validated(folder):
    ended = inside(*FILES, "--skip-collection", "--validation", "apart.msgpack", *QUICK)
    assert ended.code == 0, ended.err
    steps = [line for line in ended.out.splitlines() if " of 4: " in line]
    assert steps == [
        "2 of 4: training m.pt",
        "3 of 4: apart.msgpack is there",
        "4 of 4: validating m.pt on apart.msgpack",
    ]
    assert "Scored on all 17 problems" in ended.out


def test_paths_that_are_left_out_have_their_historic_names(folder):
    (folder / "t.parquet").rename("matmul_dataset.parquet")
    (folder / "apart.msgpack").rename("matmul_validation.msgpack")
    ended = inside("collect-and-train", "--skip-collection", *QUICK)
    assert ended.code == 0, ended.err
    assert "4 of 4: validating matmul_model.pt on matmul_validation.msgpack" in ended.out
    again = ("--dataset", "matmul_dataset.parquet", "--model", "matmul_model.pt")
    again += ("--validation-dataset", "matmul_validation.msgpack")
    ended = inside("collect-and-train", "--skip-collection", "--skip-training", *again)
    assert "3 of 4: matmul_validation.msgpack is there" in ended.out
    ended = inside("validate-model", "--model", "matmul_model.pt")
    assert "Scored on all 17 problems" in ended.out


def test_what_is_missing_is_one_sentence(folder):
    assert "m.pt: no such file" in told_off(*FILES, "--skip-training")
    gone = ("collect-and-train", "--output", "gone.parquet", "--model", "m.pt")
    assert "gone.parquet: no such file" in told_off(*gone, "--skip-collection")


CPU = ("--device", "cpu", "collect-and-train", "--libraries", *("--output", "c.parquet"))
CPU += ("--model", "m.pt")
FEW = ("--max-size", "32", "--operations", "mm", "--num-shapes", "2", "--validation-shapes", "1")
ALONE = ("--skip-training", "--skip-validation")


def test_on_a_cpu_a_model_learns_from_its_libraries(folder):
    small = ("--max-size", "64", "--operations", "mm", "--num-shapes", "12")
    ended = inside(*CPU, *small, "--validation-shapes", "3", *QUICK)
    assert ended.code == 0, ended.err
    assert "Scored on all 3 problems" in ended.out
    assert (folder / "m.pt").exists()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--model", "there.pt"), "there.pt: exists already; choose another name, or give"),
        (("--model", "m.txt"), "m.txt: got a model path ending in '.txt'"),
        (("--model", "t.parquet/m.pt"), "is not a writable directory; choose another --mod"),
        (("--model", "folder.pt", "--overwrite"), "folder.pt: got a directory"),
        (("--init-from", "gone.pt"), "gone.pt: no such file"),
        (("--validation", "apart.msgpack"), "apart.msgpack: exists already"),
        (("--validation", "v.csv"), "v.csv: got the ending 'csv'"),
        (("--validation", "new.parquet"), "got the same file to train on and to validate on"),
        (("--validation", "m.json"), "m.json: got the name of the model's card"),
        (("--output", "m.json"), "m.json: got the name of the model's card"),
    ],
)
def test_what_is_wrong_with_a_later_step_is_said_before_the_first(folder, given, said):
    (folder / "there.pt").touch()
    (folder / "folder.pt").mkdir()
    first = ("collect-and-train", "--output", "new.parquet", "--model", "m.pt")
    ended = inside(*first, *given)
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err


def test_a_model_that_cannot_be_validated_is_found_out_first(folder):
    (folder / "m.pt").write_text("no model")
    ended = inside(*CPU, *FEW, "--skip-training")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("torch-diode: m.pt: ")


def test_a_validation_set_that_cannot_be_collected_here_is_found_out_before_training(folder):
    """No machine has as many GPUs."""
    ended = inside(*FILES, "--skip-collection", "--workers", "99", *QUICK)
    assert (ended.code, ended.out) == (2, "")
    assert not (folder / "m.pt").exists()


def test_what_is_collected_with_the_same_options_is_not_collected_again(folder, trained):
    shutil.copy(trained, folder / "m.pt")
    first = inside(*CPU, *FEW, *ALONE)
    assert first.code == 0, first.err
    before = (folder / "c.parquet").read_bytes()
    again = inside(*CPU, *FEW, *ALONE)
    assert again.code == 0, again.err
    assert "c.parquet: collected already, with the same options" in again.out
    assert (folder / "c.parquet").read_bytes() == before
    for _ in range(2):  # the second time the validation set is there as well
        ended = inside(*CPU, *FEW, "--skip-training")
        assert "expected those of nvidia-h200, which the model is of" in ended.err
    assert ended.out.count("collected already, with the same options") == 2


def test_what_is_there_and_was_not_collected_so_is_refused(folder):
    (folder / "m.pt").touch()
    assert inside(*CPU, *FEW, *ALONE).code == 0
    for changed in (("--num-shapes", "3"), ("--output", "t.parquet")):
        ended = inside(*CPU, *FEW, *ALONE, *changed)
        assert ended.code == 2
        assert "not known to be collected with these options" in ended.err
        assert "--skip-collection to use it as it is" in ended.err
