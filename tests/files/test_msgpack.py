import struct

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.files.refusals import content_refusal
from torch_diode.files.msgpack import loads, read_msgpack, write_msgpack
from torch_diode.types.errors import InvalidValueError

texts = st.text(st.characters(codec="utf-8"), max_size=5)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(width=32, allow_nan=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=12,
)


@given(values)
def test_what_is_written_reads_back(tmp_path_factory, value):
    file = tmp_path_factory.mktemp("msgpack") / "x.msgpack"
    write_msgpack(file, value)
    assert read_msgpack(file) == value


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "not MessagePack"),
        (b"\x01\x02", "ExtraData"),
        (b"\xc1", "not MessagePack"),
        (b"\xdd\xff\xff\xff\xff", "not MessagePack"),
        (b"\x91" * 100_000 + b"\x01", "not MessagePack: StackError"),
        (b"\xa2\xff\xfe", "not UTF-8"),
        (msgpack.packb(msgpack.ExtType(5, b"x")), "extension type 5"),
        (msgpack.packb({1: 2}), "not MessagePack"),
    ],
)
def test_what_is_no_plain_messagepack_is_refused_in_one_line(data, said, tmp_path):
    assert said in content_refusal(read_msgpack, tmp_path / "bad.msgpack", data)


def test_lists_that_each_claim_the_whole_file_do_not_fill_the_memory():
    size = 2_000_000
    claim = b"\xdd" + struct.pack(">I", size)
    with pytest.raises(InvalidValueError):
        loads(claim * 500 + b"\x00" * size)
