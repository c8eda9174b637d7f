"""Selection of the ranked candidates that go to Inductor: pure functions, without torch."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from torch_diode.model.serving.expected_regret import expected_regrets, probability_slower
from torch_diode.types.candidate import ATEN, CPP_GEMM, LIBRARIES, MKL_PACKED
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.errors import InvalidValueError
from torch_diode.types.ranking import Ranking

TOLERANCE = 0.002
"""Expected regret at which no more candidates are added to a benchmark."""
LEAST = 2
MOST_TIMES_TOP = 3
CHANCE_SLOWER = 0.3
"""A single kernel replaces torch's own only if it is less likely than this to be slower."""
CHANCE_MUCH_SLOWER, MUCH = 0.05, 0.04
"""On a CPU, a candidate replaces plain torch's choice only if it is less likely than this to be
slower by more than that, in log time,"""
LEAST_GAIN = 0.01
"""and is predicted to be at least so much faster."""
CPU_ONLY = (*(name for name in LIBRARIES if name != ATEN), CPP_GEMM)
FIXED_SIZES_US = 0.2
"""Gain of a template with its sizes compiled in over one that gets them as arguments, as in sweeps.
Median on an H200: 0.18 below 6 us, 0.21 from 6 to 20, 0.29 to 50, 0.38 above; 0 for ATen."""
_MOST_GAIN = 0.1
"""The greatest gain, as a fraction of the time."""
_MOST_CONSIDERED = 32


def adjust_for_compile(
    ranking: Ranking,
    candidates: Candidates,
    fixed_sizes: bool,
    extra_us: float,
    template_us: float = 0.0,
) -> Ranking:
    """The ranking of the kernels that a compile generates: sizes are compiled into templates if
    they are fixed; `extra_us` is added to ATen's time, `template_us` to that of templates.

    A ranking without times, or not ordered by its times, is returned unchanged.
    """
    order, times = ranking.order, ranking.predicted_us
    fixed = fixed_sizes and ranking.open_sizes
    if not fixed and extra_us <= 0 and template_us <= 0:
        return ranking
    named = times[order]
    if np.isnan(named[0]) or not (named[1:] >= named[:-1]).all():
        return ranking
    counted, sigma = times.copy(), ranking.sigma
    is_triton = np.array([name.startswith("triton::") for name in candidates.templates])
    templates = is_triton[candidates.template]
    if fixed:
        counted -= np.where(templates, fixed_sizes_gain(times), 0.0)
    counted[templates] += template_us
    aten = candidates.is_template(ATEN)
    if extra_us > 0:
        counted[aten] += extra_us
        if sigma is not None:  # the added time is exact
            sigma = np.where(aten, sigma * times / counted, sigma)
    again = order[np.argsort(counted[order], kind="stable")]
    return replace(ranking, order=again, predicted_us=counted, sigma=sigma)


def fixed_sizes_gain(times_us: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The gain of templates of these times from compiled-in sizes."""
    return np.minimum(FIXED_SIZES_US, _MOST_GAIN * times_us)


def benchmark_count(ranking: Ranking, candidates: Candidates, top: int = 5, own: str = "") -> int:
    """The number of candidates to benchmark, with what plain torch runs (`own`, if given): the
    fewest whose expected regret is within `TOLERANCE`, from 2 to three times `top`; `top` where
    the heuristic has no error estimate."""
    most = min(MOST_TIMES_TOP * top, len(ranking.order))
    own = own or plain_choice(candidates)
    if ranking.sigma is None:
        unranked = not candidates.is_template(own)[ranking.order].any()
        return min(top, len(ranking.order) + unranked)  # it is always benchmarked
    rows = _as_benchmarked(ranking, candidates, own)[: max(_MOST_CONSIDERED, most + 1)]
    times, sigma = ranking.predicted_us[rows], ranking.sigma[rows]
    if not (np.isfinite(times).all() and np.isfinite(sigma).all()):
        return min(top, len(ranking.order))
    regrets = expected_regrets(np.log(times), np.asarray(sigma, np.float64))
    enough = int(np.argmax(regrets <= TOLERANCE)) + 1
    return max(min(enough, most), min(LEAST, most))


def benchmark_set(ranking: Ranking, candidates: Candidates, count: int, own: str = "") -> list[int]:
    """The `count` best positions, best first; plain torch's choice (`own`, if given) takes the last
    place if it is not among them, so that the benchmark's winner is never slower than that."""
    rows = [int(row) for row in ranking.order[:count]]
    plain = candidates.first_rows.get(own or plain_choice(candidates))
    if plain is not None and plain not in rows:
        rows[max(count - 1, 1) :] = [plain]
    return rows


def plain_choice(candidates: Candidates) -> str:
    """The template of what plain torch runs: ATen, or MKL's packed weight where a frozen graph
    offers no ATen; empty where there is neither."""
    names = (ATEN, MKL_PACKED)
    return next((name for name in names if name in candidates.first_rows), "")


def single_choice_order(
    ranking: Ranking, candidates: Candidates, own: str = ""
) -> npt.NDArray[np.int64]:
    """The order in which to try candidates without a benchmark: the ranking's, but the library that
    plain torch runs (`own`, if given) first where the best is too likely to be slower.

    A ranking that only shortlists has that library first in any case. On a CPU, the next best are
    considered before that: one of them may be the safer choice.
    """
    order, codes = ranking.order, candidates.template
    plain = candidates.first_rows.get(own or plain_choice(candidates))
    if plain is None or codes[order[0]] == codes[plain]:
        return order
    if ranking.shortlist:
        return _first(plain, order)
    if ranking.sigma is None:
        return order
    on_cpu = any(name in CPU_ONLY for name in candidates.templates)
    is_safe = _is_safe_on_cpu if on_cpu else _is_safe
    times, sigma = ranking.predicted_us, ranking.sigma
    for row in _before(codes[plain], codes, order) if on_cpu else order[:1].tolist():
        if is_safe(_log(times[plain] / times[row]), float(sigma[row]), float(sigma[plain])):
            return _first(row, order)
    return _first(plain, order)


def _before(
    code: np.int32, codes: npt.NDArray[np.int32], order: npt.NDArray[np.int64]
) -> list[int]:
    """The rows ranked before the first of a template; none if none of it is ranked."""
    ranked = codes[order].tolist()
    rows: list[int] = order.tolist()
    return rows[: ranked.index(code)] if code in ranked else []


def _log(ratio: float) -> float:
    return math.log(ratio) if ratio > 0 else math.nan


def _is_safe(gain: float, sigma: float, plain_sigma: float) -> bool:
    chance = probability_slower(gain, sigma, plain_sigma)
    return chance < CHANCE_SLOWER or not math.isfinite(chance)


def _is_safe_on_cpu(gain: float, sigma: float, plain_sigma: float) -> bool:
    much_slower = probability_slower(gain + MUCH, sigma, plain_sigma)
    return gain > LEAST_GAIN and much_slower < CHANCE_MUCH_SLOWER


def _first(row: int, order: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    if row == order[0]:
        return order
    return np.concatenate([[row], order[order != row]])


def _as_benchmarked(ranking: Ranking, candidates: Candidates, own: str) -> npt.NDArray[np.int64]:
    """The order in which candidates enter a benchmark: plain torch's second at the latest."""
    order = ranking.order
    place = np.flatnonzero(candidates.is_template(own)[order])
    if not len(place) or place[0] < LEAST:
        return order
    return np.concatenate([order[:1], order[place[:1]], np.delete(order, place[0])[1:]])


def check_fits(ranking: Ranking, candidates: Candidates) -> None:
    """Refuse a ranking that does not fit these candidates."""
    if not isinstance(ranking, Ranking):
        raise InvalidValueError(
            f"heuristic: got a {type(ranking).__name__}; expected a Ranking, or None to abstain"
        )
    if len(ranking.predicted_us) != len(candidates):
        raise InvalidValueError(
            f"{ranking.source}: got {len(ranking.predicted_us)} predicted times; expected one for "
            f"each of {len(candidates)} candidates"
        )
