import json
import re
from dataclasses import replace

import pytest

from tests.conftest import SHIPPED_TIMINGS
from torch_diode import Dataset
from torch_diode.files.datasets import read_dataset, write_dataset
from torch_diode.report.build import report
from torch_diode.toolkit.validate import validate
from torch_diode.types.errors import FileFaultError


def page_data(file):
    text = file.read_text(encoding="utf-8")
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.S)[1])


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    whole = read_dataset(SHIPPED_TIMINGS)
    file = tmp_path_factory.mktemp("data") / "few.msgpack"
    write_dataset(whole.take(whole.problems.ids % 600 == 0), file)
    return file


def test_the_scores_are_those_of_validate(few, tmp_path):
    result = report(few, tmp_path / "new" / "report.html")
    expected = validate("shipped", few).evaluation
    own = result.validation.evaluation
    for name, scores in expected.model.items():
        assert [s for s in own.model[name] if s.k in (1, 3, 5, 10, 20)] == scores
    assert (own.aten, own.errors) == (expected.aten, expected.errors)
    page = page_data(result.path)
    assert page == result.data
    for name, baseline in (("default", "default list"), ("aten", None)):
        scores = expected.baselines[baseline] if baseline else expected.aten
        assert page["curves"][name] == pytest.approx(scores["all"][0].geomean, abs=1e-6)
    noise = [page["curves"]["noise"][k - 1] for k in (1, 3, 5, 10, 20)]
    assert noise == pytest.approx(expected.noise, abs=1e-6)
    assert page["about"]["dataset"] == "few.msgpack"
    assert [file.name for file in result.path.parent.iterdir()] == ["report.html"]


def test_a_part_of_the_data_has_the_scores_that_validate_gives_it(few, trained, tmp_path):
    """The model was trained on some of the file's problems, not on the file."""
    own = read_dataset(trained.parent.parent / "train.parquet")
    both = Dataset.merge([own, read_dataset(few)], "first")
    other = both.take(range(100))
    h100 = [replace(timing, hardware="nvidia-h100") for timing in other]
    file = tmp_path / "both.parquet"
    write_dataset(Dataset.merge([both, Dataset.from_timings(h100)]), file)
    options = {"hardware": "nvidia-h200", "default_list": False}
    expected = validate(trained, file, **options)
    result = report(file, tmp_path / "report.html", trained, **options).validation
    assert result.scored_on == expected.scored_on
    found, wanted = (r.evaluation.model["all"][0] for r in (result, expected))
    assert found == wanted


def test_a_model_file_and_a_folder_are_named(few, trained, tmp_path):
    data = report(few.parent, tmp_path / "r.html", trained, default_list=False).data
    assert (data["about"]["dataset"], data["about"]["model"]) == (f"{few.parent.name}/", "quick.pt")
    assert data["curves"]["default"] is None
    assert data["curves"]["default_fault"] == "it was left out"


def test_an_output_that_is_an_input_or_a_folder_is_refused(few, tmp_path):
    with pytest.raises(FileFaultError, match="got an input as the output"):
        report(few, few)
    with pytest.raises(FileFaultError, match="got a directory; expected the name of an HTML file"):
        report(few, tmp_path)
