from __future__ import annotations

import random

import pyarrow.parquet as pq
import pytest

from tests import samples
from torch_diode.files.checksum import NAME, add_checksum, check_checksum
from torch_diode.files.parquet import read_parquet, write_parquet
from torch_diode.types.errors import FileFaultError, InvalidValueError


@pytest.fixture
def sealed(tmp_path):
    file = tmp_path / "data.parquet"
    write_parquet(file, samples.dataset())
    return file


def test_a_file_that_is_as_it_was_written_passes(sealed):
    check_checksum(sealed.read_bytes())
    assert read_parquet(sealed) == samples.dataset()


def test_any_flipped_bit_is_seen(sealed):
    whole = sealed.read_bytes()
    chance = random.Random(0)
    name = whole.rfind(NAME)
    for _ in range(300):
        place = chance.randrange(len(whole))
        if name <= place < name + len(NAME) + 2:
            continue  # a file without the name has no seal: Parquet's own checks are left
        damaged = bytearray(whole)
        damaged[place] ^= 1 << chance.randrange(8)
        with pytest.raises(InvalidValueError, match="do not match the checksum"):
            check_checksum(damaged)


def test_a_change_in_the_footer_is_refused_though_every_page_is_whole(sealed):
    whole = sealed.read_bytes()
    assert whole.count(b"2026-01-01") >= 1
    sealed.write_bytes(whole.replace(b"2026-01-01", b"2026-01-02"))
    with pytest.raises(FileFaultError, match=r"data\.parquet: got bytes that do not match"):
        read_parquet(sealed)


def test_a_file_without_a_seal_is_read(sealed):
    plain = sealed.with_name("plain.parquet")
    pq.write_table(pq.read_table(sealed), plain)
    assert NAME not in plain.read_bytes()
    assert read_parquet(plain) == samples.dataset()


def test_a_seal_is_set_once(sealed):
    with pytest.raises(RuntimeError, match="no place for a checksum"):
        add_checksum(bytearray(sealed.read_bytes()))


def test_an_empty_file_is_refused(tmp_path):
    (tmp_path / "empty.parquet").touch()
    with pytest.raises(FileFaultError, match=r"empty\.parquet: got an empty file"):
        read_parquet(tmp_path / "empty.parquet")
