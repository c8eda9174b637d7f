"""The command; `packaging/check_wheels.py` runs it without a dataset."""

from tests.cli.program import inside, told_off
from tests.conftest import QUICK_TRAINING as QUICK
from tests.files.test_earlier_release import EARLIER


def test_it_trains_scores_and_predicts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = ("model-example", "--dataset", EARLIER / "dataset.json", *QUICK)
    ended = inside(*given)
    assert ended.code == 0, ended.err
    assert "Regret@k" in ended.out
    assert "What the model predicts for mm:128x64x128:float16:nn:" in ended.out
    assert "triton::mm" in ended.out.splitlines()[-1]
    assert "example_model.pt: exists already" in told_off(*given)
