import re

import pytest

from torch_diode.hardware import known, with_threads
from torch_diode.model.networks import LIBRARY
from torch_diode.model.registry import SHIPPED, model_file
from torch_diode.toolkit.training.fine_tuning import load_initial
from torch_diode.toolkit.training.network_options import check_kind, resolve_options
from torch_diode.toolkit.training.options import TrainOptions
from torch_diode.types.errors import InvalidValueError

CPU = with_threads(known("amd-zen5"), 2)


@pytest.fixture(scope="module")
def initial(h200):
    return load_initial(str(model_file(SHIPPED, h200)))


def test_the_kind_follows_from_the_hardware_unless_it_is_given(h200):
    assert resolve_options(TrainOptions(), None, 0, None, h200).kind == "deep"
    assert resolve_options(TrainOptions(), None, 0, None, CPU).kind == LIBRARY
    assert resolve_options(TrainOptions(model_type="base"), None, 0, None, h200).kind == "base"


def test_fine_tuning_keeps_the_network_and_learns_more_for_another_chip(initial, h200):
    same = resolve_options(TrainOptions(), initial, 0, None, h200)
    other = resolve_options(TrainOptions(), initial, 0, None, known("nvidia-a100"))
    assert same.shape == other.shape == initial.metadata.shape
    assert same.epochs < other.epochs
    assert same.learning_rate < other.learning_rate


def test_values_that_are_given_win_over_every_default(initial, h200):
    given = TrainOptions(num_epochs=3, learning_rate=0.25)
    for start in (None, initial):
        options = resolve_options(given, start, 7, None, h200)
        assert (options.epochs, options.learning_rate, options.seed) == (3, 0.25, 7)


def test_a_network_of_another_size_than_the_first_is_refused(initial, h200):
    with pytest.raises(InvalidValueError, match="expected the same; leave the option out"):
        resolve_options(TrainOptions(hidden_dim=7), initial, 0, None, h200)


def test_a_network_that_is_not_for_the_hardware_is_refused(initial, h200):
    check_kind("deep", h200, initial, 2)
    for kind, hardware, start, teachers, said in (
        ("deep", CPU, None, 0, "expected library"),
        (LIBRARY, h200, None, 0, "expected base or deep for nvidia-h200"),
        (LIBRARY, CPU, initial, 0, "got init-from"),
        (LIBRARY, CPU, None, 2, "got teachers"),
    ):
        with pytest.raises(InvalidValueError, match=re.escape(said)):
            check_kind(kind, hardware, start, teachers)
