from torch_diode.cli.options.parameters import build, complete
from torch_diode.toolkit.collecting.collect import CollectOptions


def test_parameters_with_the_names_of_fields_make_a_dataclass():
    options = build(CollectOptions, {"workers": 2, "top": 5}, seed=7)
    assert options == CollectOptions(workers=2, seed=7)


def test_values_that_begin_with_the_text_are_offered():
    assert complete(("base", "deep"))("d") == ["deep"]
