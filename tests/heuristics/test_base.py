from torch_diode.heuristics.base import digest


def test_texts_that_join_to_the_same_text_have_different_digests():
    assert digest("ab", "c") != digest("a", "bc")
    assert digest("ab") != digest("a", "b")


def test_a_digest_is_the_same_in_every_process():
    assert digest("torch", "diode") == "ab02b8119f64dc9c1a54"
