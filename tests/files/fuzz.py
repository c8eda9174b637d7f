"""Damaged and hostile files, and a process that reads them and may die of them.

Half of the Parquet files are damaged versions of a file that we wrote, which page checksums must
catch. The other half start from files without page checksums, so that the decoders themselves are
exposed to the bytes.
"""

import copy
import io
import json
import random
import resource
import signal
import struct
import tempfile
import traceback
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgpack
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from tests import samples
from tests.model.test_checkpoint import METADATA, network
from torch_diode import Dataset, OperationShapeSet, Solution, Table
from torch_diode.collection.workers.pool import ProgressMarker, WorkerDied, WorkerPool
from torch_diode.files.datasets import read_dataset, write_dataset
from torch_diode.files.json import read_json
from torch_diode.files.shape_sets import read_shapes, write_shapes
from torch_diode.files.tables import read_table, write_table
from torch_diode.model.checkpoint import load_model, save_model
from torch_diode.model.networks import file_names
from torch_diode.types.errors import EmptySelectionError, FileFaultError

FORMATS = ("parquet", "json", "msgpack", "table", "shapes", "solution", "pt", "safetensors")
SECONDS_A_FILE = 20
MEMORY_BYTES = 3 << 30
READERS: dict[str, Callable[[Path], Any]] = {
    "parquet": read_dataset,
    "json": read_dataset,
    "msgpack": read_dataset,
    "table": read_table,
    "shapes": read_shapes,
    "solution": lambda path: read_json(path, Solution.from_dict),
    "pt": load_model,
    "safetensors": load_model,
}
BLOCKS = {"block_m": 16, "block_n": 16, "block_k": 16}
SOLUTIONS: tuple[Any, ...] = (
    {"name": "best", "configs": [{"M": 8, "N": 8, "K": 8, **BLOCKS}]},
    {"config": [{"block_m": 64, "block_n": 128, "block_k": 32, "num_warps": 8}]},
    {"mm": {"config": [BLOCKS]}, "name": "by op"},
)


# Mutations of bytes

HUGE = (
    *(struct.pack("<I", number) for number in (2**31 - 1, 2**32 - 1, 2**30)),
    struct.pack(">I", 2**31 - 1),
    b"\xfe\xff\xff\xff\x0f",  # as a varint
    b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
)
NOT_UTF_8 = (b"\xff\xfe", b"\xc0\x80", b"\xed\xa0\x80", b"\x80")
MUTATIONS = ("flip", "truncate", "insert", "delete", "splice", "overwrite", "inflate") * 4
MUTATIONS += ("repeat", "empty", "wrong magic", "not UTF-8", "not UTF-8")
IN_PLACE = ("flip", "insert", "delete", "overwrite", "inflate", "splice")


def mutate(chance: random.Random, data: bytearray, mutation: str) -> None:
    end, place, size = len(data), chance.randrange(len(data)), chance.choice((1, 2, 16))
    if mutation == "flip":
        for _ in range(chance.choice((1, 1, 2, 8))):
            data[chance.randrange(end)] ^= 1 << chance.randrange(8)
        return
    low, high = sorted(chance.randrange(end) for _ in range(2))
    eight = chance.choice((b"\xff" * 8, b"\0" * 8, chance.randbytes(8)))
    huge = chance.choice(HUGE)  # the place may be that of a length
    replaced: dict[str, tuple[int, int, bytes]] = {
        "truncate": (place, end, b""),
        "insert": (place, place, chance.randbytes(size)),
        "delete": (place, place + size, b""),
        "splice": (place, place, bytes(data[low : min(high, low + 4096)])),
        "overwrite": (place, place + 8, eight),
        "inflate": (place, place + len(huge), huge),
        "repeat": (end, end, bytes(data[:place])),
        "empty": (0, end, b""),
        "wrong magic": (chance.choice((0, end - 4)), end, chance.randbytes(4)),
        "not UTF-8": (place, place + 2, chance.choice(NOT_UTF_8)),
    }
    start, stop, new = replaced[mutation]
    data[start : min(stop, start + 4) if mutation == "wrong magic" else stop] = new


# Mutations of the content

NUMBERS: tuple[Any, ...] = (None, True, -1, 0, 1.5, -0.0, 2**31, 2**63 - 1)
TEXTS = ("", "float17", "NVIDIA H200\n", "\N{GRINNING FACE}", "x" * 5000, "os.system('true')")
STRANGE: tuple[Any, ...] = (*NUMBERS, *TEXTS, [], {}, [[]], {"a": 1})
ONLY_JSON: tuple[Any, ...] = (float("nan"), float("inf"), -float("inf"), 10**400, "\ud800")


def places(value: Any, levels: int = 50) -> Iterator[tuple[Any, Any]]:
    """The containers of a tree with each of their keys."""
    keys = value.keys() if isinstance(value, dict) else range(len(value))
    for key in list(keys):
        yield value, key
        if levels and isinstance(value[key], (dict, list)):
            yield from places(value[key], levels - 1)


def change_content(chance: random.Random, tree: Any, strange: tuple[Any, ...]) -> Any:
    """Change a few places of a tree into something unexpected."""
    for _ in range(chance.choice((1, 1, 1, 3))):
        holder, key = chance.choice(list(places(tree)))
        act = chance.randrange(9)
        if act <= 3:
            holder[key] = copy.deepcopy(chance.choice(strange))
        elif act == 4:
            del holder[key]
        elif act == 5 and isinstance(holder, list):
            holder.append(copy.deepcopy(holder[key]))
        elif act == 5:
            name = chance.choice(("op", "format", "extra", "time_us", "bad\nname"))
            holder[name] = copy.deepcopy(holder[key])
        elif act == 6:
            tree["version"] = chance.choice((0, 1, 3, 2**40, "2", None))
        elif act == 7:
            holder[key] = deep(chance)
        else:
            tree.pop("format", None)  # now it looks like a file of the first version
        if not isinstance(tree, dict) or not tree:
            return tree
    return tree


def deep(chance: random.Random) -> Any:
    """A nested value, up to what an encoder can write."""
    value: Any = 1
    for _ in range(chance.choice((5, 100, 400))):
        value = [value] if chance.random() < 0.5 else {"a": value}
    return value


def nested_text(chance: random.Random) -> bytes:
    """Deeper nesting than an encoder would write."""
    depth = chance.choice((10_000, 200_000))
    return chance.choice((b"[", b'{"a":', b'{"hardware":', b'[{"format":[')) * depth


def nested_packed(chance: random.Random) -> bytes:
    depth = chance.choice((500, 1020, 100_000))
    return chance.choice((b"\x91", b"\x81\xa1a", b"\xdd\x00\x00\xff\xff")) * depth


# The files to start from


def sources(home: Path) -> dict[str, list[bytes]]:
    """Good files of every format."""
    dataset = samples.dataset()
    write_dataset(dataset, home / "d.parquet")
    plain = dataset.table.replace_schema_metadata(pq.read_schema(home / "d.parquet").metadata)
    for name, options in (
        ("plain", {"compression": "none", "use_dictionary": False}),
        ("coded", {"compression": "snappy", "row_group_size": 3}),
        ("newer", {"compression": "none", "data_page_version": "2.0", "version": "2.6"}),
    ):
        pq.write_table(plain, home / f"{name}.parquet", **options)
    write_dataset(dataset, home / "d.json")
    write_dataset(dataset, home / "d.msgpack")
    write_table(Table.from_dataset(dataset, k=3), home / "t.json")
    write_shapes(OperationShapeSet.of([samples.LINEAR, samples.BATCHED]), home / "s.json")
    golden = Path(__file__).with_name("golden")
    read = {
        "parquet": ["d.parquet", "plain.parquet", "coded.parquet", "newer.parquet"],
        "json": ["d.json"],
        "msgpack": ["d.msgpack"],
        "table": ["t.json"],
        "shapes": ["s.json"],
    }
    files = {name: [(home / file).read_bytes() for file in them] for name, them in read.items()}
    for name in ("json", "table", "shapes"):
        old = "dataset" if name == "json" else name
        files[name].append((golden / f"{old}_version_1.json").read_bytes())
    files["msgpack"].append(msgpack.packb(json.loads(files["json"][1])))
    files["solution"] = [json.dumps(solution).encode() for solution in SOLUTIONS]
    for name, data in model_sources().items():
        files[name.rpartition(".")[2]] = [data]
    return files


@cache
def model_sources() -> dict[str, bytes]:
    """A small model in both forms."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"deep.{ending}" for ending in ("pt", "safetensors")]
        for file in files:
            save_model(file, network().state_dict(), METADATA)
        return {file.name: file.read_bytes() for file in files}


def mutated(form: str, chance: random.Random, originals: list[bytes]) -> tuple[bytes, bool]:
    """One bad file, and whether its checksums must show the damage."""
    if form == "parquet" and chance.random() < 0.45:
        data = bytearray(originals[0])
        mutate(chance, data, chance.choice(MUTATIONS))
        return bytes(data), True
    hostile = HOSTILE.get(form, hostile_text)
    return hostile(form, chance, bytearray(chance.choice(originals))), False


def hostile_text(form: str, chance: random.Random, data: bytearray) -> bytes:
    if chance.random() < 0.02:
        return nested_packed(chance) if form == "msgpack" else nested_text(chance)
    if chance.random() < 0.5:
        mutate(chance, data, chance.choice(MUTATIONS))
        return bytes(data)
    if form == "msgpack":
        tree = change_content(chance, msgpack.unpackb(data), STRANGE)
        return bytes(msgpack.packb(tree))
    tree = change_content(chance, json.loads(data), STRANGE + ONLY_JSON)
    return json.dumps(tree).encode()


def hostile_parquet(_: str, chance: random.Random, data: bytearray) -> bytes:
    if chance.random() < 0.15:
        return strange_columns(chance)
    if chance.random() < 0.5:
        mutate_footer(chance, data)
    else:
        mutate(chance, data, chance.choice(MUTATIONS))
    return bytes(data)


def hostile_model(form: str, chance: random.Random, data: bytearray) -> bytes:
    """A damaged model, or a whole one whose metadata are strange."""
    if chance.random() < 0.5:
        mutate(chance, data, chance.choice(MUTATIONS))
        return bytes(data)
    text = json.dumps(change_content(chance, json.loads(METADATA.to_json()), STRANGE + ONLY_JSON))
    if form == "safetensors":
        size = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + size])
        header["__metadata__"]["torch_diode"] = text
        packed = json.dumps(header).encode()
        return len(packed).to_bytes(8, "little") + packed + bytes(data[8 + size :])
    sink = io.BytesIO()
    torch.save({"torch_diode": text, "weights": file_names(network().state_dict())}, sink)
    return sink.getvalue()


def mutate_footer(chance: random.Random, data: bytearray) -> None:
    """Mutate the footer: few bytes that decide what all others mean."""
    (size,) = struct.unpack("<I", data[-8:-4])
    start = len(data) - 8 - size
    footer = data[start:-8]
    mutate(chance, footer, chance.choice(IN_PLACE))
    data[start:] = bytes(footer) + struct.pack("<I", len(footer)) + b"PAR1"


HOSTILE: dict[str, Callable[[str, random.Random, bytearray], bytes]] = {
    "parquet": hostile_parquet,
    "pt": hostile_model,
    "safetensors": hostile_model,
}
"""Functions that make a hostile file of a form; `hostile_text` of all others."""


def strange_columns(chance: random.Random) -> bytes:
    """A valid Parquet file of something that is not a dataset."""
    table = samples.dataset().table
    name = chance.choice(table.column_names)
    values = table.column(name).to_pylist()
    place = chance.randrange(len(values))
    strange = (None, -1, 2**31, "", "float17", "x\ny", float("nan"), -1.0, True)
    values[place] = chance.choice(strange)
    header = {"format": "torch-diode dataset", "version": chance.choice((2, 2, 2, 3, "x"))}
    columns = {n: table.column(n) for n in table.column_names} | {name: values}
    try:
        changed = pa.table(columns)
    except pa.ArrowException:
        changed = table.take([0, 0, 1]) if chance.random() < 0.5 else table.drop_columns([name])
    sink = io.BytesIO()
    pq.write_table(changed.replace_schema_metadata({"torch_diode": json.dumps(header)}), sink)
    return sink.getvalue()


# Reading them


def worker(_: ProgressMarker) -> Callable[[tuple[str, Path]], tuple[str, str]]:
    """Reads files, and ends by an alarm where one takes too long."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)

    def outcome_of(job: tuple[str, Path]) -> tuple[str, str]:
        signal.alarm(SECONDS_A_FILE)
        outcome, detail = read(*job)
        signal.alarm(0)
        peak = most_memory()
        return ("memory", f"{peak >> 20} MiB") if peak > MEMORY_BYTES // 2 else (outcome, detail)

    return outcome_of


def most_memory() -> int:
    """Peak memory of this process in bytes. Not `ru_maxrss`, which includes the parent's."""
    text = Path("/proc/self/status").read_text(encoding="ascii")
    return int(text.partition("VmHWM:")[2].split()[0]) * 1024


def read(form: str, path: Path) -> tuple[str, str]:
    """The outcome of one file."""
    try:
        content = READERS[form](path)
    except (FileFaultError, EmptySelectionError) as fault:
        text = str(fault)
        if not text.startswith(str(path)) or "\n" in text or len(text) > 600 + len(str(path)):
            return "unclear", text[:300]
        return "refused", text
    except BaseException:  # noqa: BLE001 - whatever it is, it is what is looked for
        return "traceback", traceback.format_exc(limit=-3)
    if isinstance(content, Dataset):
        Dataset.from_timings(list(content))  # every row is readable and valid
        return "valid", content.digest
    return "valid", ""


def outcome_in(pool: WorkerPool[Any, Any], form: str, path: Path) -> tuple[str, str]:
    """The outcome of a file read by a process, which may die of it."""
    pool.submit(0, [(form, path)])
    while not (events := list(pool.read(60))):
        pass
    (event,) = events
    return ("crash or hang", event.reason) if isinstance(event, WorkerDied) else event.result
