from torch_diode._bounded_cache import BoundedCache


def test_the_entry_that_exceeds_the_size_empties_the_cache_first():
    cache: BoundedCache[str, int] = BoundedCache(2)
    cache["a"], cache["b"] = 1, 2
    cache["b"] = 3
    assert cache == {"a": 1, "b": 3}
    cache["c"] = 4
    assert cache == {"c": 4}
