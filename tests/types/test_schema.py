"""The checks over columns are the checks of the row types: both refuse the same rows."""

import contextlib

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests import samples
from tests.strategies import shortest
from torch_diode.types import schema as spec
from torch_diode.types.candidate import CONFIG_FIELDS, Candidate, TritonGEMMConfig
from torch_diode.types.dataset import Dataset
from torch_diode.types.errors import InvalidValueError
from torch_diode.types.problem import DTYPES, OPS, MMShape
from torch_diode.types.schema import conform
from torch_diode.types.timing import STATUSES, Timing

GOOD = {
    "hardware": "nvidia-h200",
    **MMShape("mm", 8, 8, 8, dtype="float32").to_dict(),
    **dict.fromkeys(CONFIG_FIELDS, 0),
    **Candidate("triton::mm", TritonGEMMConfig(16, 32, 64)).to_dict(),
    "split_k": 1,
    "time_us": 1.5,
    "spread": None,
    "repeats": 1,
    "status": "ok",
    "method": "sweep",
    "torch": "2.13.0",
    "triton": "",
}
BARE = dict.fromkeys(CONFIG_FIELDS, 0)
WORDS = st.sampled_from(["x", "X", "a b", "a-b", "nvidia-h200", "1.0+cu", "é", "triton::mm\n"])
SINGLES = st.none() | st.floats(width=32) | st.just(1.0)
CHANGES = {
    "hardware": WORDS,
    "op": st.sampled_from([*OPS, "matmul"]),
    **dict.fromkeys(("B", "M", "N", "K"), st.sampled_from([1, 2, 0, -1, 2**31 - 1])),
    "dtype": st.sampled_from([*DTYPES, "float17"]),
    "out_dtype": st.sampled_from([*DTYPES, "float17"]),
    **dict.fromkeys(("transpose_a", "transpose_b", "tf32"), st.booleans()),
    "bias": st.sampled_from(["none", "vector", "matrix", "scalar"]),
    "template": st.sampled_from(["aten", "decompose_k", "cutlass", "triton::bmm", "Triton::mm"]),
    **dict.fromkeys(("block_m", "block_n", "block_k"), st.sampled_from([0, 1, 3, 16, 4096, 8192])),
    "group_m": st.sampled_from([0, 1, 7, 1024, 1025]),
    **dict.fromkeys(("num_stages", "num_warps", "matrix_instr_nonkdim"), st.integers(-1, 66)),
    **dict.fromkeys(("waves_per_eu", "kpack"), st.integers(-1, 18)),
    "split_k": st.sampled_from([0, 1, 2, 65536, 65537]),
    "time_us": SINGLES,
    "spread": SINGLES,
    "repeats": st.sampled_from([-1, 0, 1, 2**15 - 1]),
    "status": st.sampled_from([*STATUSES, "slow"]),
    "method": WORDS,
    "torch": WORDS,
    "triton": WORDS,
}


@st.composite
def rows(draw):
    """A good row, of Triton or of ATen, with up to three fields changed to anything."""
    row = {**GOOD, **draw(st.sampled_from([{}, {"template": "aten", **BARE}]))}
    for name in draw(st.lists(st.sampled_from(sorted(CHANGES)), max_size=3)):
        row[name] = draw(CHANGES[name])
    return row


def built_by_hand(row):
    """The row as the row types build it."""
    config = {name: row[name] for name in CONFIG_FIELDS}
    return Timing(
        row["hardware"],
        MMShape(**{name: row[name] for name in spec.PROBLEM_NAMES}),
        Candidate(
            row["template"],
            TritonGEMMConfig(**config) if any(config.values()) else None,
            row["split_k"],
        ),
        *(row[name] for name in ("time_us", "status", "spread", "repeats", "method")),
        torch=row["torch"],
        triton=row["triton"],
    )


def made(make):
    """What is made, or None where it is refused."""
    with contextlib.suppress(InvalidValueError):
        return make()


@settings(max_examples=300)
@given(rows())
@example({**GOOD, "template": "aten", **BARE, "num_stages": 3})
@example({**GOOD, "template": "cutlass", "block_m": 0})
@example({**GOOD, "template": "cutlass", "block_n": 0})
def test_columns_refuse_the_rows_the_row_types_refuse_and_read_back_the_others(row):
    columns = {name: [value] for name, value in row.items()}
    found, wanted = made(lambda: Dataset.from_columns(columns)), made(lambda: built_by_hand(row))
    assert (found is None) == (wanted is None)
    if wanted is not None:
        assert (found[0].problem, found[0].candidate) == (wanted.problem, wanted.candidate)
        assert found[0].time_us == (None if wanted.time_us is None else shortest(wanted.time_us))


def changed(**change):
    return {name: [change.get(name, value)] * 2 for name, value in GOOD.items()}


def test_columns_with_a_default_may_be_left_out():
    needed = ("hardware", "op", "M", "N", "K", "dtype", "bias", "template", "time_us")
    row = {name: [GOOD[name]] for name in needed} | {"template": ["aten"]}
    timing = Dataset.from_columns(row)[0]
    assert timing.problem == MMShape("mm", 8, 8, 8, dtype="float32")
    assert (timing.status, timing.repeats, timing.method) == ("ok", 1, "sweep")


@pytest.mark.parametrize(
    ("name", "values", "said"),
    [
        ("M", [8.5], "column 'M': got double"),
        ("tf32", [1], "column 'tf32': got int64"),
        ("M", [True], "column 'M': got bool"),
        ("M", [None], "missing values"),
        ("torch", [b"2.13.0"], "column 'torch': got binary"),
        ("block_m", [70_000], "column 'block_m'"),
    ],
)
def test_a_column_of_the_wrong_type_is_refused_by_name(name, values, said):
    with pytest.raises(InvalidValueError, match=said):
        Dataset.from_columns({**{n: [v] for n, v in GOOD.items()}, name: values})


def test_columns_that_are_unknown_missing_duplicate_or_of_different_lengths_are_refused():
    columns = {name: [value] for name, value in GOOD.items()}
    for change, message in (
        ({"colour": ["red"]}, "unknown column 'colour'"),
        ({"M": [1, 2]}, "dataset columns"),
    ):
        with pytest.raises(InvalidValueError, match=message):
            Dataset.from_columns({**columns, **change})
    with pytest.raises(InvalidValueError, match="got no column 'K'"):
        Dataset.from_columns({name: values for name, values in columns.items() if name != "K"})
    table = samples.dataset().table
    with pytest.raises(InvalidValueError, match="column twice"):
        conform(table.append_column("M", table.column("M")))


def test_the_fault_names_the_row_and_counts_the_others():
    columns = {name: [value] * 3 for name, value in GOOD.items()}
    columns |= {"M": [1, 2, 3], "time_us": [1.0, -1.0, float("nan")]}
    with pytest.raises(InvalidValueError, match=r"'time_us', row 1 \(and 1 more rows\): got -1.0"):
        Dataset.from_columns(columns)


def test_a_duplicate_timing_is_refused_with_both_rows():
    with pytest.raises(InvalidValueError, match="same timing twice, in rows 0 and 1"):
        Dataset.from_columns(changed())
    assert len(Dataset.from_columns({**changed(), "method": ["sweep", "feedback"]})) == 2


def test_two_codes_for_one_text_are_one_text():
    """Arrow allows a dictionary to hold a text twice; grouping by codes must not see two."""
    table = Dataset.from_columns({**changed(), "M": [8, 9]}).table
    doubled = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int16()), ["mm", "mm"])
    table = table.set_column(table.column_names.index("op"), "op", doubled)
    table = table.set_column(table.column_names.index("M"), "M", pa.array([8, 8], pa.int32()))
    with pytest.raises(InvalidValueError, match="same timing twice"):
        Dataset(table)


def test_a_code_without_a_text_is_refused():
    table = Dataset.from_columns({**changed(), "M": [8, 9]}).table
    broken = pa.DictionaryArray.from_arrays(pa.array([0, 7], pa.int16()), ["mm"], safe=False)
    with pytest.raises(InvalidValueError):
        conform(table.set_column(table.column_names.index("op"), "op", broken))
