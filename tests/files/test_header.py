import pytest

from torch_diode.files.header import check_header, header, provenance_of
from torch_diode.types.errors import InvalidValueError


def test_a_header_reads_as_what_was_written():
    written = header("table", 2, {"torch": ("2.13.0", "2.11.0"), "by": ()})
    assert check_header(written, "table", 2) == 2
    assert provenance_of(written) == {"torch": ("2.11.0", "2.13.0"), "by": ()}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ([], "got format 'list'; expected 'torch-diode table'"),
        ({"format": "torch-diode dataset", "version": 2}, "got format 'torch-diode dataset'"),
        ({"format": "torch-diode table"}, "got version None"),
        ({"format": "torch-diode table", "version": True}, "got version True"),
        (
            {"format": "torch-diode table", "version": 3},
            "got version 3; this torch-diode reads up to 2, upgrade it",
        ),
    ],
)
def test_another_file_or_a_newer_one_is_refused(data, said):
    with pytest.raises(InvalidValueError) as fault:
        check_header(data, "table", 2)
    assert said in str(fault.value)


@pytest.mark.parametrize("bad", [[], {"a": "text"}, {"a": [1]}, {"a": None}])
def test_a_provenance_is_names_with_lists_of_texts(bad):
    with pytest.raises(InvalidValueError, match="provenance"):
        provenance_of({"provenance": bad})
