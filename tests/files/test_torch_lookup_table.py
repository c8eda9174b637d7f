"""Exported tables, read by torch's own lookup table handler in Inductor's real lowering."""

import json

import pytest
import torch

from tests.samples import H200
from torch_diode import Candidate, MMShape, Table, TritonGEMMConfig
from torch_diode.files.torch_lookup_table import inductor_table
from torch_diode.integration.capture.fake_gpu import Input, lower, pretend
from torch_diode.types.table import TableEntry

lookup = pytest.importorskip(
    "torch._inductor.lookup_table.choices", reason="torch has its lookup table since 2.10"
)

from torch._inductor import config as inductor_config  # noqa: E402
from torch._inductor.virtualized import V  # noqa: E402

CONFIG = TritonGEMMConfig(32, 64, 128, group_m=4, num_stages=3, num_warps=8)
AUTOTUNE = {"max_autotune": True, "max_autotune_gemm_backends": "ATEN,TRITON"}


class Listening(lookup.LookupTableChoices):
    """Torch's handler, recording what it found and what it offered."""

    def __init__(self):
        super().__init__()
        self.found = {}
        self.offered = []

    def lookup_template_configs(self, *args, **kwargs):
        found = super().lookup_template_configs(*args, **kwargs)
        self.found |= found
        return found

    def get_template_configs(self, *args, **kwargs):
        choices = super().get_template_configs(*args, **kwargs)
        configs = [choice.annotations["ktc"] for choice in choices]
        self.offered += [(ktc.template.uid, ktc.params.to_kwargs()) for ktc in configs]
        return choices


def operands(problem):
    """Tensors as the problem describes them, bias first."""
    batch = (problem.B,) if problem.op in ("bmm", "baddbmm") else ()
    dtype = getattr(torch, problem.dtype)

    def matrix(rows, columns, transposed):
        strides = (1, rows) if transposed else (columns, 1)
        outer = (rows * columns,) if batch else ()
        return Input((*batch, rows, columns), dtype, (*outer, *strides))

    a = matrix(problem.M, problem.K, problem.transpose_a)
    b = matrix(problem.K, problem.N, problem.transpose_b)
    if problem.bias == "none":
        return [a, b]
    if problem.bias == "vector":
        return [Input((problem.N,), dtype), a, b]
    return [matrix(problem.M, problem.N, False), a, b]


def exported(problem, candidate, hardware="nvidia-h200"):
    return inductor_table(Table(((hardware, problem, (TableEntry(candidate),)),)))


def entry_of(problem, candidate, hardware="nvidia-h200"):
    return next(iter(exported(problem, candidate, hardware).values()))[0]


def ask(problem, entries, tmp_path):
    """Torch's handler after a lookup of a problem, its table read from a JSON file."""
    file = tmp_path / "table.json"
    file.write_text(json.dumps(inductor_table(Table((("nvidia-h200", problem, entries),)))))
    handler = Listening()
    # The key of a device is cached for good; here the device changes between tests.
    lookup.LookupTableChoices._get_device_key.cache_clear()
    table = {"lookup_table.table": json.loads(file.read_text())}
    with pretend(H200), V.set_choices_handler(handler):
        lower(getattr(torch, problem.op), operands(problem), {**AUTOTUNE, **table}, generate=False)
    lookup.LookupTableChoices._get_device_key.cache_clear()
    return handler


LAYOUTS = [(False, False), (False, True), (True, False), (True, True)]
OPS = [
    {"op": "mm"},
    {"op": "addmm", "bias": "vector"},
    {"op": "addmm", "bias": "matrix"},
    {"op": "bmm", "B": 3},
    {"op": "baddbmm", "B": 3, "bias": "matrix"},
    {"op": "baddbmm", "B": 3, "bias": "vector"},
]


@pytest.mark.parametrize(
    ("kind", "layout"),
    [*((OPS[0], layout) for layout in LAYOUTS), *((op, (False, True)) for op in OPS[1:])],
)
def test_torch_finds_the_exported_key_and_offers_the_exported_config(kind, layout, tmp_path):
    problem = MMShape(M=256, N=512, K=1024, transpose_a=layout[0], transpose_b=layout[1], **kind)
    template = "triton::bmm" if "bmm" in kind["op"] else "triton::mm"
    handler = ask(problem, (TableEntry(Candidate(template, CONFIG)),), tmp_path)
    assert list(handler.found) == [template]
    # For addmm torch looks up ATen separately, and has ATen where the table does not.
    ((uid, arguments),) = [item for item in handler.offered if item[0] != "aten::addmm"]
    assert uid == template
    wanted = {"BLOCK_M": 32, "BLOCK_N": 64, "BLOCK_K": 128, "GROUP_M": 4}
    wanted |= {"num_stages": 3, "num_warps": 8, "EVEN_K": True}
    assert {name: arguments[name] for name in wanted} == wanted


@pytest.mark.parametrize("kind", OPS, ids=lambda kind: "-".join(map(str, kind.values())))
def test_torch_offers_aten_where_the_table_has_it(kind, tmp_path):
    problem = MMShape(M=256, N=512, K=1024, transpose_b=True, **kind)
    handler = ask(problem, (TableEntry(Candidate("aten")),), tmp_path)
    assert list(handler.found) == [f"aten::{kind['op']}"]
    offered = [uid for uid, _ in handler.offered if uid.startswith("aten")]
    assert offered == [f"aten::{kind['op']}"]
    # For addmm torch looks up Triton separately, and has its own list where the table has none.
    assert len(handler.offered) == 1 or kind["op"] == "addmm"


def test_torch_offers_a_table_of_several_in_full(tmp_path):
    tma = Candidate("triton::mm_persistent_tma", CONFIG)
    entries = (Candidate("triton::mm", CONFIG), Candidate("aten"), tma)
    problem = MMShape("mm", 256, 512, 1024, transpose_b=True)
    handler = ask(problem, tuple(TableEntry(c) for c in entries), tmp_path)
    assert {uid for uid, _ in handler.offered} >= {"triton::mm", "aten::mm"}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_a_config_has_the_arguments_torch_itself_derives_from_the_dtype(dtype, tmp_path):
    """Older readers have no defaults: the export must hold what torch computes."""
    problem = MMShape("mm", 100, 512, 1000, dtype=dtype)
    handler = ask(problem, (TableEntry(Candidate("triton::mm", CONFIG)),), tmp_path)
    offered = handler.offered[0][1]
    assert offered["EVEN_K"] is False
    plain = Listening()
    with pretend(H200), V.set_choices_handler(plain):
        lower(torch.mm, operands(problem), AUTOTUNE, generate=False)
    own = next(arguments for uid, arguments in plain.offered if uid == "triton::mm")
    entry = entry_of(problem, Candidate("triton::mm", CONFIG))
    assert entry["ACC_TYPE"] == own["ACC_TYPE"]
    assert entry["USE_FAST_ACCUM"] == own["USE_FAST_ACCUM"]
    assert set(own) <= set(entry) | {"OUT_DTYPE", "hint_override"}


def test_a_problem_of_another_size_is_a_miss():
    table = exported(MMShape("mm", 256, 512, 1024), Candidate("triton::mm", CONFIG))
    handler = Listening()
    other = operands(MMShape("mm", 256, 512, 2048))
    with pretend(H200), V.set_choices_handler(handler):
        lower(torch.mm, other, {**AUTOTUNE, "lookup_table.table": table}, generate=False)
    assert handler.found == {}


def test_a_stale_template_hash_is_a_miss_and_a_fresh_one_a_hit(tmp_path):
    from torch._inductor.kernel.mm import mm_template

    problem, candidate = MMShape("mm", 256, 512, 1024), Candidate("triton::mm", CONFIG)
    with inductor_config.patch({"lookup_table.check_src_hash": True}):
        fresh = ask(problem, (TableEntry(candidate, template_hash=mm_template.src_hash),), tmp_path)
        stale = ask(problem, (TableEntry(candidate, template_hash="0" * 64),), tmp_path)
    assert list(fresh.found) == ["triton::mm"]
    assert stale.found == {}


def test_every_name_a_driver_reports_has_its_key():
    table = exported(MMShape("mm", 8, 8, 8), Candidate("aten"), "nvidia-h100")
    devices = {key.split("+")[0] for key in table}
    assert devices == {"NVIDIA H100 80GB HBM3", "NVIDIA H100 SXM5 80GB"}


@pytest.mark.parametrize(
    ("dtype", "out_dtype", "accumulator"),
    [
        ("bfloat16", "bfloat16", "tl.float32"),
        ("float64", "float64", "tl.float64"),
        ("int8", "int32", "tl.int32"),
        ("float16", "float32", "tl.float32"),
    ],
)
def test_the_accumulator_follows_the_output(dtype, out_dtype, accumulator):
    problem = MMShape("mm", 8, 8, 8, dtype=dtype, out_dtype=out_dtype)
    assert entry_of(problem, Candidate("triton::mm", CONFIG))["ACC_TYPE"] == accumulator


def test_arguments_of_amd_alone_are_written_where_they_are_set():
    config = TritonGEMMConfig(16, 16, 16, waves_per_eu=2, matrix_instr_nonkdim=16, kpack=2)
    entry = entry_of(MMShape("mm", 8, 8, 8), Candidate("triton::mm", config), "amd-instinct-mi300x")
    assert (entry["waves_per_eu"], entry["matrix_instr_nonkdim"], entry["kpack"]) == (2, 16, 2)


def test_a_split_of_k_has_torchs_name_and_its_hash():
    entry = TableEntry(Candidate("decompose_k", split_k=16), template_hash="ab1")
    table = Table((("nvidia-h200", MMShape("mm", 8, 8, 1024), (entry,)),))
    expected = {"template_id": "decompose_k", "k_split": 16, "template_hash": "ab1"}
    assert list(inductor_table(table).values()) == [[expected]]
