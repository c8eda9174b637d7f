"""The shape set of real models: the shipped file, what makes it, and dimensions checked by hand."""

import sys

import pytest

from tests.scripts import ROOT, load_script
from torch_diode.files.shape_sets import read_shapes
from torch_diode.types.problem import OPS

SHIPPED = ROOT / "diode_datasets/shapes/real_models.json"
script = load_script("workflows", "make_real_shapes")

# Each from the model's configuration: problem, then the origin it has to be found under.
BY_HAND = {
    # hidden 4096, intermediate 14336
    "mm:16x14336x4096:bfloat16:nt": "Llama-3-8B, mlp.gate_proj, decode batch 16",
    # 8 key-value heads of 128
    "mm:1x1024x4096:bfloat16:nt": "Llama-3-8B, self_attn.k_proj, decode batch 1",
    # a rank of eight: (64 + 2 x 8) x 128 / 8 outputs; 2 x 28672 / 8
    "mm:64x1280x8192:bfloat16:nt": "Llama-3-70B TP8, self_attn.qkv_proj, decode batch 64",
    # biased Q, 14 heads of 64
    "addmm:64x896x896:bfloat16:nt": "Qwen2.5-0.5B, self_attn.q_proj, decode batch 64",
    # 71 heads of 64, and one for keys and one for values
    "mm:2048x4672x4544:bfloat16:nt": "Falcon-7B, self_attn.qkv_proj, prefill 2048 tokens",
    # 4096 tokens, two of eight experts each
    "mm:1024x14336x4096:bfloat16:nt": (
        "Mixtral-8x7B, expert.gate_proj, 4096 tokens, 1024 an expert"
    ),
    "mm:4096x256x7168:float32:nt": "DeepSeek-V3, router, 4096 tokens",
    # latent attention: 512 + 64 outputs; then per head of 128
    "mm:128x576x7168:bfloat16:nt": "DeepSeek-V3, kv_a_proj_with_mqa, 128 tokens",
    "bmm:128x128x512x128:bfloat16:nn": "DeepSeek-V3, absorbed W_UK, 128 tokens",
    "baddbmm:32x8x5760x2880:bfloat16:nn:bias=vector": (
        "GPT-OSS-20B, experts.gate_up_proj, 8 tokens an expert"
    ),
    # weights of GPT-2 as (in, out)
    "addmm:1024x2304x768:float32:nn": "GPT-2, attn.c_attn, 1x1024 tokens",
    # 128 x 197 tokens
    "addmm:25216x3072x768:bfloat16:nt": "ViT-B/16, mlp.fc1, batch 128",
    # two samples of 64 x 64, GEGLU on 320 channels
    "addmm:8192x2560x320:float16:nt": "SD-1.5 512px, ff.net.0.proj, 4096 tokens, batch 2",
    # 3 x 3072 + 12288 outputs, 4096 + 512 tokens
    "addmm:4608x21504x3072:bfloat16:nt": "Flux.1 1024px, single.linear1, 4608 rows",
    "mm:16x51866x1280:float16:nt": "Whisper-large-v3, proj_out, decode batch 16",
    "addmm:2048x1024x479:float32:nt:tf32": "DLRM MLPerf, top.0, batch 2048",
    # one output: a vector lies both ways, and counts as row-major
    "addmm:2048x1x256:float32:nn:tf32": "DLRM MLPerf, top.4, batch 2048",
    "bmm:2048x27x27x128:float32:nt:tf32": "DLRM MLPerf, interaction, batch 2048",
    # 12 heads of 64, 8 samples of 1024
    "bmm:96x1024x1024x64:bfloat16:nt": "GPT-2, attention QK^T, training 8x1024",
    "baddbmm:16x512x512x64:bfloat16:nt:bias=vector": (
        "BLOOM-560M, attention QK^T, prefill 512, ALiBi"
    ),
    "mm:4096x4096x14336:bfloat16:nn": "Llama-3-8B, mlp.gate_proj, training 4096 rows, dX",
    "mm:14336x4096x4096:bfloat16:tn": "Llama-3-8B, mlp.gate_proj, training 4096 rows, dW",
    "mm:2048x8x4096:bfloat16:nt": "Llama-3-8B, q_proj.lora_A, rank 8, 2048 tokens",
}


@pytest.fixture(scope="module")
def shipped():
    return read_shapes(SHIPPED)


def test_the_script_makes_the_shipped_file_and_prints_a_summary(tmp_path, monkeypatch, capsys):
    output = tmp_path / "shapes.json"
    monkeypatch.setattr(sys, "argv", ["make_real_shapes.py", "--output", str(output)])
    assert script.main() == 0
    assert output.read_bytes() == SHIPPED.read_bytes()
    last = capsys.readouterr().out.splitlines()[-1].split()
    assert last == ["all", str(len(read_shapes(SHIPPED)))]


def test_ops_dtypes_layouts_and_unaligned_sizes_are_covered(shipped):
    problems = shipped.problems
    assert {p.op for p in problems} == set(OPS)
    assert {p.dtype for p in problems} == {"bfloat16", "float16", "float32"}
    assert {p.tf32 for p in problems if p.dtype == "float32"} == {False, True}
    assert {p.layout for p in problems} >= {"nn", "nt", "tn"}
    assert {p.bias for p in problems if p.op == "baddbmm"} == {"vector", "matrix"}
    for op in OPS:
        assert len(shipped[op]) >= 40, op
    assert sum(any(size % 8 for size in (p.N, p.K)) for p in problems) >= 50


def test_dimensions_match_those_derived_by_hand(shipped):
    shapes = {shape.problem.key: shape for shape in shipped}
    assert {key: shapes[key].origin for key in BY_HAND} == BY_HAND
    # Gate and up, of Llama-3-8B and of Mistral-7B.
    assert shapes["mm:16x14336x4096:bfloat16:nt"].count >= 4
