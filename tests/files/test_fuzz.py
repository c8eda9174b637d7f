import pytest

from tests.files.fuzz import FORMATS, fuzz, summary


@pytest.mark.parametrize("form", FORMATS)
def test_a_damaged_or_hostile_file_is_refused_in_one_sentence_or_is_valid(form):
    tallies = fuzz(300, seed=7, formats=[form])
    assert sum(tallies[form].outcomes.values()) == 300
    assert tallies[form].outcomes["refused"] > 150
    assert not tallies[form].bad, summary(tallies)
