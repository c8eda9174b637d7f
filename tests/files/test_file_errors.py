import pytest

from torch_diode.files.file_errors import existing, naming_file
from torch_diode.types.errors import FileFaultError, InvalidValueError


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (InvalidValueError("got 5"), "x.json: got 5"),
        (RecursionError(), "x.json: nested too deeply"),
        (MemoryError(), "x.json: does not fit into memory"),
        (FileNotFoundError(), "x.json: no such file"),
        (IsADirectoryError(), "x.json: got a directory"),
        (PermissionError(13, "Permission denied"), "x.json: Permission denied"),
        (OSError("odd"), "x.json: odd"),
    ],
)
def test_whatever_is_wrong_with_a_file_names_the_file(fault, said):
    with pytest.raises(FileFaultError, match=said), naming_file("x.json"):
        raise fault


def test_a_mistake_of_ours_stays_what_it_is():
    with pytest.raises(KeyError), naming_file("x.json"):
        raise KeyError("a bug must not look like a bad file")


def test_a_path_has_to_lead_somewhere(tmp_path):
    assert existing(tmp_path) == tmp_path
    with pytest.raises(FileFaultError, match="no such file or directory"):
        existing(tmp_path / "none")
    with pytest.raises(FileFaultError, match="too long"):
        existing(tmp_path / ("x" * 300))
