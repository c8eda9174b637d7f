"""Cases by group, drawn at random: command lines, damaged files, bad heuristics, kills."""

import json
import random
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import torch

from tests import samples
from tests.attack import processes
from tests.attack.actions import RULES
from tests.attack.sandbox import Case
from tests.cli.test_app import commands
from tests.cpu_timings import cpu_timings
from tests.files import fuzz
from torch_diode import OperationShapeSet, Table
from torch_diode.candidates import candidate_space
from torch_diode.files.datasets import write_dataset
from torch_diode.files.shape_sets import write_shapes
from torch_diode.files.tables import write_table
from torch_diode.hardware import detect
from torch_diode.toolkit.training.options import TrainOptions
from torch_diode.toolkit.training.train import train
from torch_diode.types.problem import MMShape
from torch_diode.types.table import TableEntry

Draw = Callable[[random.Random, Path], Case]
PROGRAM = "import torch\ntorch.compile(torch.mm)(torch.ones(4, 8), torch.ones(8, 4))\n"
TINY = TrainOptions(num_epochs=1, hidden_dim=8, num_layers=1)


# Files that every case finds


def fill(home: Path) -> None:
    """Make the files that every case finds, good ones and traps, in `base`."""
    base = home / "base"
    base.mkdir()
    fuzz.sources(base)
    timings = cpu_timings(24)
    for ending in ("parquet", "json", "msgpack"):
        write_dataset(timings, base / f"c.{ending}")
    train(timings, base / "m.pt", TINY)
    for name, data in fuzz.model_sources().items():
        (base / name).write_bytes(data)
    write_table(table_of_this_cpu(), base / "here.json")
    write_shapes(OperationShapeSet.of([MMShape("mm", 8, 8, 8, dtype="float32")]), base / "few.json")
    (base / "sol.json").write_text(json.dumps(fuzz.SOLUTIONS[0]))
    (base / "p.jsonl").write_text(json.dumps(samples.LINEAR.to_dict()) + "\n")
    (base / "program.py").write_text(PROGRAM)
    (base / "raises.py").write_text("raise ValueError('the program's own')\n".replace("'s", ""))
    (base / "note.txt").write_text("irreplaceable\n")
    (base / "empty.parquet").touch()
    for folder in ("shards", "folder.pt", "c.parquet.d"):
        (base / folder).mkdir()
    write_dataset(timings, base / "shards" / "one.parquet")
    (base / "loop").symlink_to("loop")
    (base / "link.parquet").symlink_to("c.parquet")
    (base / "dangling.json").symlink_to("nowhere.json")
    (base / "closed.json").write_text("{}")
    (base / "two words\n and a line.json").write_text("{}")


def table_of_this_cpu() -> Table:
    """A table for the problems that the compiles of the attack meet."""
    cpu, rows = detect("cpu"), []
    for m, n, k in ((4, 8, 16), (64, 48, 32), (1, 1, 1)):
        problem = MMShape("mm", m, n, k, dtype="float32")
        space = candidate_space(problem, cpu, ("aten", "onednn"))
        entries = tuple(TableEntry(candidate) for candidate in reversed(list(space)))
        rows.append((cpu.name, problem, entries))
    return Table(tuple(rows))


# Command lines

FILES = (
    "c.parquet", "c.json", "c.msgpack", "d.parquet", "t.json", "s.json", "few.json", "sol.json",
    "p.jsonl", "m.pt", "m.json", "deep.pt", "deep.safetensors", "program.py", "raises.py",
    "note.txt", "empty.parquet", "shards", "folder.pt", "loop", "link.parquet", "dangling.json",
    "closed.json", "two words\n and a line.json", "missing.parquet", "missing.pt", "note.txt/x.pt",
    "new.parquet", "new.json", "new.msgpack", "new.pt", "new.safetensors", "new.html", "new/a/b.pt",
    "new", "../case/new.json", ".", "", "x" * 300, "\N{GRINNING FACE}.json", "-", "--",
)  # fmt: skip
TEXTS = (
    "nvidia-h200", "NVIDIA H200", "amd-zen5", "cpu", "cuda", "cuda:99", "mm", "addmm", "bmm", "nn",
    "float32", "bfloat16", "int8", "auto", "all", "held-out", "shipped", "none", "matmul", "vector",
    "EXHAUSTIVE", "DEFAULT", "sweep", "feedback", "max-autotune", "deep", "base", "library", "last",
    "mm:512x4096x4096:bfloat16:nt", "", " ", "a\nb", "%s", "{}", "\udcff", "x" * 5000, "-1",
    "parquet", "json", "bash", "127.0.0.1",
)  # fmt: skip
NUMBERS = ("0", "1", "2", "-1", "8", "1e3", "1.5", "nan", "inf", "x", "", "99999999999999999999")
GLOBAL = (
    (), (), ("--seed", "1"), ("--seed", "-1"), ("--format", "json"), ("--format", "xml"),
    ("--device", "cpu"), ("--device", "cuda"), ("--device", "\n"), ("--nonsense",),
)  # fmt: skip
ENVIRON = (
    ("TORCH_DIODE_MODEL", ("m.pt", "deep.pt", "missing.pt", "loop", "none", "shipped", "note.txt")),
    ("TORCH_DIODE_TABLE", ("here.json", "t.json", "missing.json", "c.json", "shards")),
    ("TORCH_DIODE_MODE", ("auto", "single", "observe", "garbage")),
    ("TORCH_DIODE_TOP", ("1", "0", "x", "99999999999")),
    ("TORCH_DIODE_STRICT", ("1", "maybe")),
    ("TORCH_DIODE", ("0", "1", "garbage")),
    ("TORCH_DIODE_MODEL_PATH", ("shards", "missing", "../base", ".")),
)
_FEW_SHAPES = ("--max-size", "16", "--libraries", "--num-shapes", "2")
_SHORT = ("--num-epochs", "1", "--hidden-dim", "8", "--num-layers", "1")
_WITHIN_SECONDS = {
    "collect": _FEW_SHAPES,
    "create-validation": _FEW_SHAPES,
    "collect-and-train": (*_FEW_SHAPES, *_SHORT, "--validation-shapes", "1"),
    "collect-shapeset": ("--shapeset", "few.json", "--libraries"),
    "train": _SHORT,
}
"""Options that keep a command short, given last, so that they count."""
_NOT_DRAWN = {"num_epochs", "hidden_dim", "num_layers", "teachers", "help", "shapeset"}
_UNREACHABLE = {"ray"}
"""Options that reach for what is not on this machine."""


def command_line(chance: random.Random, home: Path) -> Case:
    """A command with options of which most are such as it takes."""
    name = chance.choice(sorted(commands()))
    options, values = [], []
    for parameter in commands()[name].params:
        if parameter.name in _NOT_DRAWN | _UNREACHABLE:
            continue
        wanted = parameter.required or chance.random() < 0.25
        if not wanted or (parameter.required and chance.random() < 0.03):
            continue
        if parameter.param_type_name == "argument":
            values += [_value(chance, parameter) for _ in range(chance.choice((1, 1, 1, 2)))]
        elif getattr(parameter, "is_flag", False):
            options.append(chance.choice(parameter.opts))
        else:
            options += [chance.choice(parameter.opts), _value(chance, parameter)]
    before = chance.choice(GLOBAL)
    if name.startswith(("collect", "create")) and chance.random() < 0.9:
        before = ("--device", "cpu")
    line = [*before, *name.split(), *options, *values, *_WITHIN_SECONDS.get(name, ())]
    variable, texts = chance.choice(ENVIRON)
    environ = {variable: chance.choice(texts)} if chance.random() < 0.3 else {}
    return Case("command lines", name, tuple(line), environ=environ)


def _value(chance: random.Random, parameter: Any) -> str:
    # Typer has a type of its own from 0.26 on, and before that click's.
    kind = f"{getattr(parameter, 'type_descriptor', '')} {getattr(parameter, 'type', '')}".lower()
    if chance.random() < 0.1:
        return chance.choice(chance.choice((FILES, TEXTS, NUMBERS)))
    if "'int'" in kind or "integer" in kind or "float" in kind:
        return chance.choice(NUMBERS)
    if "path" in kind or parameter.name in ("model", "init_from"):
        return chance.choice(FILES)
    return chance.choice(TEXTS)


# Damaged files

_SHORT_TRAINING, _SHORT_COLLECTION = " ".join(_SHORT), " ".join(_FEW_SHAPES)
_PREDICT = "predict --m 8 --n 8 --k 8 --hardware nvidia-h200 --model @"
READ_BY: dict[str, tuple[str, ...]] = {
    "parquet": (
        "stats @",
        "convert @ -o new.json",
        "table build --dataset @ -o new.json",
        f"train --dataset @ --model new.pt {_SHORT_TRAINING}",
        "validate-model --dataset @ --model m.pt",
        "report --dataset @ --model m.pt",
    ),
    "json": ("stats @", "convert @ -o new.parquet", "convert-json-to-msgpack --input-files @"),
    "msgpack": ("stats @", "convert @ -o new.parquet"),
    "table": ("table show @", "table export @ --inductor -o new.json"),
    "shapes": ("--device cpu collect-shapeset --shapeset @ -o new.parquet --dtypes int8",),
    "solution": (
        "validate-max-autotune --dataset c.parquet --model m.pt --max-autotune-solution @",
    ),
    "pt": (
        "validate-model --dataset c.parquet --model @",
        _PREDICT,
        "rank --input p.jsonl -o new.jsonl --hardware nvidia-h200 --model @",
        "train --dataset c.parquet --model new.pt --init-from @",
    ),
    "safetensors": (_PREDICT,),
}
"""Command lines that read a form; `@` stands for the file."""
_ENDINGS = {"table": "json", "shapes": "json", "solution": "json"}


@cache
def _originals(home: Path) -> dict[str, list[bytes]]:
    folder = home / "originals"
    folder.mkdir()
    return fuzz.sources(folder)


def _damaged(chance: random.Random, home: Path, forms: tuple[str, ...]) -> tuple[str, str, bytes]:
    form = chance.choice(forms)
    data, _ = fuzz.mutated(form, chance, _originals(home)[form])
    return form, f"damaged.{_ENDINGS.get(form, form)}", data


def damaged_file(chance: random.Random, home: Path) -> Case:
    """A damaged file read by a function of the Python API."""
    form, name, data = _damaged(chance, home, fuzz.FORMATS)
    return Case("files by the API", form, (form, name), {name: data}, run="read")


def damaged_file_in_command(chance: random.Random, home: Path) -> Case:
    """A damaged file given to a command that reads it."""
    form, name, data = _damaged(chance, home, tuple(READ_BY))
    line = tuple(name if word == "@" else word for word in chance.choice(READ_BY[form]).split())
    return Case("files by commands", form, line, {name: data})


def damaged_state(chance: random.Random, home: Path) -> Case:
    """Damaged files that a killed collection or training has left."""
    if chance.random() < 0.5:
        line = f"train --dataset c.parquet --model new.pt {_SHORT_TRAINING}"
        name, content = "new.pt.state", bytearray(chance.choice(_originals(home)["pt"]))
    else:
        line = f"--device cpu collect -o new.parquet {_SHORT_COLLECTION}"
        name, content = chance.choice(
            (
                ("new.parquet.parts/settings.txt", bytearray(b'{"command": "collect", "seed": 0}')),
                ("new.parquet.parts/.journal-1.log", bytearray(b"TDJ1" + chance.randbytes(40))),
            )
        )
    fuzz.mutate(chance, content, chance.choice(fuzz.MUTATIONS))
    return Case("files left by kills", name, tuple(line.split()), {name: bytes(content)})


def compile_with_file(chance: random.Random, home: Path) -> Case:
    """A damaged table or model that a compile on this CPU is told to use."""
    original = bytearray((home / "base" / "here.json").read_bytes())
    if chance.random() < 0.5:
        data = fuzz.hostile_text("table", chance, original)
        variable, name = "TORCH_DIODE_TABLE", "damaged.json"
    else:
        _, name, data = _damaged(chance, home, ("pt", "safetensors"))
        variable = "TORCH_DIODE_MODEL"
    return Case(
        "compiles",
        variable,
        (),
        {name: data},
        {variable: name, "TORCH_DIODE": "1"},
        "compile_with_files",
    )


def compile_with_rule(chance: random.Random, home: Path) -> Case:
    """A bad rule that decides a compile on this CPU."""
    name = chance.choice(sorted(RULES))
    return Case("heuristics", name, (name,), environ={"TORCH_DIODE": "1"}, run="compile_with_rule")


KILLED = (
    "train --dataset c.parquet --model new.pt --num-epochs 20",
    "convert c.parquet -o new.json",
    "rank --input p.jsonl -o new.jsonl --hardware nvidia-h200",
    "report --dataset c.parquet --model m.pt",
    "table build --dataset c.parquet -o new.json --threads 1",
    f"--device cpu collect -o new.parquet {_SHORT_COLLECTION} --num-shapes 6",
)


def kill(chance: random.Random, home: Path) -> Case:
    """A command that is killed, and given again."""
    line = tuple(chance.choice(KILLED).split())
    number = chance.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT))
    after = (chance.uniform(0, chance.choice((0.1, 1, 4))), int(number))
    return replace(Case("kills", line[0], line), kill=after)


def several_processes(chance: random.Random, home: Path) -> Case:
    """Processes or threads side by side, or thousands of decisions."""
    name = chance.choice(processes.ACTIONS).__name__
    return Case("processes", name, (name,), environ={"TORCH_DIODE": "1"}, run="several_processes")


GROUPS: dict[str, tuple[Draw, float]] = {
    "command lines": (command_line, 30),
    "files by the API": (damaged_file, 300),
    "files by commands": (damaged_file_in_command, 15),
    "files left by kills": (damaged_state, 3),
    "compiles": (compile_with_file, 4),
    "heuristics": (compile_with_rule, 4),
    "kills": (kill, 1),
    "processes": (several_processes, 0.5),
}
"""Each group's function that draws a case, and its share of the cases."""


def draw(seed: int, home: Path) -> Iterator[Case]:
    """Cases of all groups without end, each from a seed of its own, so that one can be repeated."""
    shares = [share for _, share in GROUPS.values()]
    number = 0
    while True:
        chance = random.Random(f"{seed} {number}")
        (name,) = chance.choices(list(GROUPS), shares)
        case = GROUPS[name][0](chance, home)
        yield replace(case, name=f"{case.name} (seed {seed}, case {number})")
        number += 1


torch.set_num_threads(1)
