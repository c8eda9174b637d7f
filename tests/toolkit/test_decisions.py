"""A CPU model's decisions on measured problems go through the policy of a compile."""

import pytest

from tests.cpu_timings import cpu_timings
from torch_diode import CustomHeuristic, ModelHeuristic, validate
from torch_diode.hardware import find
from torch_diode.model.checkpoint import load_model
from torch_diode.model.features.table import feature_table
from torch_diode.toolkit.decisions import OFFERS, decide, decisions_over_plain

ZEN5 = find("amd-zen5", 1)
DATASET = cpu_timings(40, seed=1)
TABLE = feature_table(DATASET, ZEN5)


def names(rows):
    return {DATASET[int(row)].candidate.template for row in TABLE.rows[rows]}


def test_each_offer_has_its_candidates_and_plain_choice(cpu_model):
    heuristic = ModelHeuristic(load_model(cpu_model))
    plain = {"unfrozen": {"aten"}, "frozen": {"mkl_packed"}, "all": {"aten"}}
    for offer, templates in OFFERS.items():
        decided = decide(heuristic, TABLE, DATASET, ZEN5, templates)
        assert names(decided.plain) == plain[offer]
        assert names(decided.chosen) <= set(templates)
        assert (TABLE.group[decided.chosen] == TABLE.group[decided.best]).all()


def test_where_the_heuristic_abstains_torch_decides():
    nobody = CustomHeuristic(lambda problem, candidates: None)
    decided = decide(nobody, TABLE, DATASET, ZEN5, OFFERS["all"])
    assert (decided.chosen == decided.plain).all()


def test_a_model_is_faster_than_plain_torch_and_nearly_never_slower(cpu_model):
    found = decisions_over_plain(load_model(cpu_model), TABLE, DATASET, ZEN5)
    assert set(found) == set(OFFERS)
    assert found["unfrozen"]["all"].geomean < 0.8
    assert found["all"]["all"].geomean < found["all"]["all"].best * 1.03
    assert found["all"]["all"].slower == 0
    assert "precision=float32,layout=nn,threads=2" in found["all"]


def test_validation_has_the_decisions_and_the_baselines_of_a_cpu(cpu_model):
    result = validate(str(cpu_model), DATASET)
    assert result.evaluation.model["all"][0].geomean < 1.03
    assert set(result.evaluation.baselines) == {"analytical", "oneDNN alone"}
    assert set(result.to_dict()["scores"]["over_plain"]) == set(OFFERS)
    assert {"threads=1", "threads=2"} <= set(result.evaluation.model)
    assert all(" x" in case["problem"] for case in result.worst_predictions(3))


def test_the_card_of_a_cpu_says_how_it_does_over_plain_torch(cpu_model):
    text = cpu_model.with_suffix(".md").read_text()
    assert "## Over plain torch" in text
    assert "| threads | 1, 2 |" in text
    assert "cpp::gemm 8x16x1" in text


@pytest.mark.parametrize("kind", ["deep", "base"])
def test_a_gpus_network_is_refused(kind, tmp_path):
    from torch_diode.toolkit.training.options import TrainOptions
    from torch_diode.toolkit.training.train import train
    from torch_diode.types.errors import InvalidValueError

    with pytest.raises(InvalidValueError, match="expected library for amd-zen5"):
        train(DATASET, tmp_path / "m.pt", TrainOptions(model_type=kind))
