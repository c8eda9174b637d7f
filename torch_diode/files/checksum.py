"""A checksum over a whole Parquet file, kept in the file itself.

Parquet's own checksums cover its pages, not the footer that says where they lie and what they
mean: a flipped bit there can move a column or lose a page's checksum. So the footer also holds the
CRC-32 of all of the file's bytes, its own eight digits taken as zeros. It is verified before
anything is parsed. It guards against damage, not against forgery.
"""

from __future__ import annotations

import zlib

from torch_diode.types.errors import InvalidValueError

NAME = b"torch_diode_crc32"
UNSEALED = b"00000000"
# How the footer (Thrift's compact form) holds the pair: the name, "a text follows", its length.
_MARK = NAME + b"\x18\x08"


def add_checksum(data: bytearray) -> None:
    """Put the checksum of a file into the place its footer keeps for it."""
    start = data.rfind(_MARK) + len(_MARK)
    if start < len(_MARK) or data[start : start + 8] != UNSEALED:
        raise RuntimeError("no place for a checksum where pyarrow should have left it")
    data[start : start + 8] = _digits(data, start)


def check_checksum(data: bytes) -> None:
    """Refuse a file whose bytes are not those that were sealed; one without a seal passes."""
    start = data.rfind(_MARK) + len(_MARK)
    if start >= len(_MARK) and data[start : start + 8] != _digits(data, start):
        raise InvalidValueError("got bytes that do not match the checksum; the file is damaged")


def _digits(data: bytes | bytearray, start: int) -> bytes:
    with memoryview(data) as view:
        checksum = zlib.crc32(view[:start])
        checksum = zlib.crc32(UNSEALED, checksum)
        return b"%08x" % zlib.crc32(view[start + 8 :], checksum)
