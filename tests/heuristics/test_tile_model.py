import numpy as np

from tests.samples import H200
from torch_diode.heuristics.tile_model import Constants, Tiles, tile_times_us
from torch_diode.types.problem import MMShape

BLOCK = 128


def times(problem: MMShape, *, resident: float = 1.0, persistent: bool = False, parts: float = 1.0):
    sizes = (BLOCK, BLOCK, 64.0, 8.0, 4.0, resident)
    tiles = Tiles(*(np.array([size]) for size in sizes), np.array([True]), np.array([persistent]))
    return float(tile_times_us(problem, tiles, H200, Constants(), parts)[0])


def of_tiles(down: int, across: int, k: int = 4096) -> MMShape:
    return MMShape("mm", BLOCK * down, BLOCK * across, k)


def test_a_few_tiles_more_than_there_are_units_cost_a_whole_round():
    assert H200.units == 132
    full, less, more = (times(of_tiles(12, across)) for across in (11, 10, 12))
    assert full < 1.08 * less
    assert more > 1.5 * full


def test_a_persistent_kernel_overlaps_the_rounds_after_the_first():
    one, many = of_tiles(12, 11, k=64), of_tiles(48, 22, k=64)
    assert times(one, persistent=True) == times(one)
    assert times(many, persistent=True) < times(many)


def test_a_split_of_k_pays_where_tiles_are_few_and_the_sum_is_long():
    few, many = of_tiles(2, 2, k=65536), of_tiles(48, 11)
    assert times(few, parts=8.0) < times(few)
    assert times(many, parts=8.0) > times(many)
