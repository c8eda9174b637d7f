import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.files.refusals import content_refusal
from torch_diode.files.json import dumps, loads, read_json, write_json

texts = st.text(st.characters(codec="utf-8"), max_size=5)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=12,
)


@given(values, st.integers(0, 5))
def test_what_is_written_reads_back_and_is_json_to_anybody(value, depth):
    text = dumps(value, depth)
    assert loads(text.encode()) == value
    assert json.loads(text) == value


def test_the_first_levels_stand_on_lines_and_each_record_on_one(tmp_path):
    file = tmp_path / "x.json"
    write_json(file, {"a": [{"b": 1, "c": [2]}, {"b": 3}], "d": {}}, depth=2)
    assert file.read_text() == (
        '{\n  "a": [\n    {"b": 1, "c": [2]},\n    {"b": 3}\n  ],\n  "d": {}\n}\n'
    )


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "not JSON: Expecting value"),
        (b'{"a": 1} x', "Extra data"),
        (b'{"a": NaN}', "got NaN; expected a finite number"),
        (b'{"a": 1, "a": 2}', "got the key 'a' twice"),
        (b'{"a": "\xff"}', "not UTF-8"),
        (b"[" * 100_000, "nested too deeply"),
        (b"9" * 10_000, "not JSON that can be read"),
        (b'{"a": "\\ud800"}', "half of a surrogate pair"),
        (b"\xef\xbb\xbf{}", "not JSON"),
    ],
)
def test_what_is_no_json_is_refused_in_one_line(data, said, tmp_path):
    assert said in content_refusal(read_json, tmp_path / "bad.json", data)


def test_a_whole_surrogate_pair_is_a_character():
    assert loads(b'"\\ud83d\\ude00"') == "\N{GRINNING FACE}"


def test_a_number_that_json_has_not_is_not_written(tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "x.json", {"a": float("nan")}, 1)
    assert list(tmp_path.iterdir()) == []
