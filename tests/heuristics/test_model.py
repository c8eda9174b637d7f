import numpy as np
import numpy.typing as npt
import pytest

from tests.samples import H200
from torch_diode import Candidates, Hardware, MMShape
from torch_diode.candidates import candidate_space
from torch_diode.heuristics.model import ModelHeuristic
from torch_diode.heuristics.testing.conformance import check_heuristic
from torch_diode.types.errors import InvalidValueError

PROBLEM = MMShape("mm", 512, 512, 512)
SPACE = candidate_space(PROBLEM, H200)
Times = npt.NDArray[np.float64]


class TileModel:
    """A timing model of one line: the smaller the block, the longer it takes."""

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale

    def predict_us(
        self, problem: MMShape, candidates: Candidates, hardware: Hardware
    ) -> tuple[Times, Times | None]:
        blocks = candidates.fields["block_m"].astype(np.float64)
        return self.scale * 1e3 / (1.0 + blocks), np.full(len(candidates), 0.1)

    def supports(self, problem: MMShape, hardware: Hardware) -> str | None:
        return None if problem.dtype == "bfloat16" else f"trained on bfloat16, not {problem.dtype}"

    def fingerprint(self) -> str:
        return f"tile model {self.scale}"


def test_candidates_are_ordered_by_predicted_time():
    ranking = ModelHeuristic(TileModel(), "mine").rank(PROBLEM, SPACE, H200)
    assert ranking.source == "mine"
    assert (np.diff(ranking.predicted_us[ranking.order]) >= 0).all()
    assert SPACE.fields["block_m"][ranking.order[0]] == 256
    assert ranking.sigma is not None


def test_a_problem_the_model_does_not_support_is_an_abstention_with_its_reason():
    heuristic = ModelHeuristic(TileModel())
    other = MMShape("mm", 512, 512, 512, dtype="float16")
    assert heuristic.rank(other, SPACE, H200) is None
    assert heuristic.why_abstained(other, SPACE, H200) == "trained on bfloat16, not float16"
    assert heuristic.why_abstained(PROBLEM, SPACE, H200) == ""
    assert heuristic.rank(PROBLEM, Candidates.of([]), H200) is None


@pytest.mark.parametrize("times", [[1.0], [float("nan")] * len(SPACE), [-1.0] * len(SPACE)])
def test_a_bad_prediction_is_an_error_not_an_order(times):
    class Bad(TileModel):
        def predict_us(self, problem, candidates, hardware):
            return np.array(times), None

    with pytest.raises(InvalidValueError, match="bad"):
        ModelHeuristic(Bad(), "bad").rank(PROBLEM, SPACE, H200)


def test_the_fingerprint_follows_the_model():
    one, two = ModelHeuristic(TileModel(1.0)), ModelHeuristic(TileModel(2.0))
    assert one.fingerprint() != two.fingerprint()
    assert one.fingerprint() == ModelHeuristic(TileModel(1.0)).fingerprint()


def test_a_model_full_of_equal_times_conforms():
    check_heuristic(ModelHeuristic(TileModel()), H200).raise_if_failed()
