import gzip

import pytest

from tests.files.autoheuristic_logs import CONFIG, FULL, LINEAR, log, timing
from tests.files.refusals import content_refusal
from torch_diode.files.autoheuristic import decision_of, read_autoheuristic
from torch_diode.files.datasets import read_dataset, write_dataset

SMALL, LARGE = CONFIG.format(16, 32, 64, 3, 2), CONFIG.format(128, 64, 256, 4, 8)
LINES = (
    timing(LINEAR, "extern_mm", 0.02),
    timing(LINEAR, SMALL, 0.05),
    timing(LINEAR, LARGE, float("inf")),
    timing(FULL, "extern_mm", 0.004),
    timing(FULL, SMALL, 0.003),
    *(timing(LINEAR, "extern_mm", time) for time in (0.03, 0.021, 0.021)),
)


def test_a_log_is_the_dataset_of_its_timings(tmp_path):
    file = tmp_path / "a100_mm.txt"
    file.write_text(log(LINES))
    dataset = read_dataset(file)
    assert [(t.problem.key, str(t.candidate), t.time_us, t.status) for t in dataset] == [
        ("mm:512x1024x256:float16:nt", "aten", 21.0, "ok"),
        ("mm:512x1024x256:float16:nt", "triton::mm 16x64x32 g8 s3 w2", 50.0, "ok"),
        ("mm:512x1024x256:float16:nt", "triton::mm 128x256x64 g8 s4 w8", None, "failed"),
        ("mm:64x16x32:float32:nn", "aten", 4.0, "ok"),
        ("mm:64x16x32:float32:nn", "triton::mm 16x64x32 g8 s3 w2", 3.0, "ok"),
    ]
    assert {(t.hardware, t.method) for t in dataset} == {("nvidia-a100", "feedback")}
    # 0.021 twice is one measurement, read again from torch's autotune cache.
    assert [(t.repeats, t.spread) for t in dataset][:2] == [
        (3, pytest.approx(0.119, abs=1e-3)),
        (1, None),
    ]
    assert dataset.provenance["source"] == ("PyTorch AutoHeuristic log a100_mm.txt",)
    assert dataset.provenance["timed_by"] == ("Inductor's autotuning, with the launch",)
    assert len(dataset.provenance["collected"]) == 1
    write_dataset(dataset, tmp_path / "same.parquet")
    assert read_dataset(tmp_path / "same.parquet") == dataset


def test_a_compressed_log_and_one_beside_other_shards_read_the_same(tmp_path):
    (tmp_path / "h100_mm.txt.gz").write_bytes(gzip.compress(log(LINES, (9, 0)).encode()))
    (tmp_path / "notes.txt").write_text("not data")
    (tmp_path / "requirements.txt.gz").write_bytes(gzip.compress(b"{}"))
    dataset = read_dataset(tmp_path)
    assert dataset == read_autoheuristic(tmp_path / "h100_mm.txt.gz")
    assert dataset.texts("hardware") == ["nvidia-h100"]


@pytest.mark.parametrize(
    ("path", "capability", "chip"),
    [
        ("NVIDIA_A100-SXM4-40GB/mm.txt", (8, 0), "nvidia-a100-40gb"),
        ("logs/mm_h100_nvl.txt", (9, 0), "nvidia-h100-nvl"),
        ("NVIDIA_GeForce_RTX_4090/mm.txt", (8, 9), "nvidia-geforce-rtx-4090"),
    ],
)
def test_the_chip_is_told_by_the_files_or_the_folders_name(tmp_path, path, capability, chip):
    file = tmp_path / path
    file.parent.mkdir()
    file.write_text(log(LINES, capability))
    assert read_autoheuristic(file).texts("hardware") == [chip]


def test_padded_rows_keep_their_layout_and_other_strides_are_left_out(tmp_path):
    padded = LINEAR.replace(",256,1,1,256,", ",264,1,1,260,")
    expanded = LINEAR.replace(",256,1,1,256,", ",0,1,1,256,")
    file = tmp_path / "a100_mm.txt"
    file.write_text(log([timing(padded, "extern_mm", 1.0), timing(expanded, "extern_mm", 2.0)]))
    assert [(t.problem.layout, t.time_us) for t in read_autoheuristic(file)] == [("nt", 1000.0)]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "no AutoHeuristic log"),
        ("[1]\n", "no AutoHeuristic log"),
        (log(()), "no timings"),
        (log(LINES)[:-20], "timing per line"),
        (log(LINES).replace("512,", "many,", 1), "timing per line"),
        (log(LINES, name="flex_attention"), "log of 'flex_attention'"),
        (log([timing(LINEAR, "banana", 1.0)]), "choice 'banana'"),
        (log([timing(LINEAR, CONFIG.format(17, 32, 64, 3, 2), 1.0)]), "block_m: got 17"),
        (log([timing(LINEAR, "extern_mm", -1.0)]), "time of -1.0 ms"),
        (log([timing(LINEAR, "extern_mm", float("nan"))]), "without all its values"),
        (log([timing(LINEAR.replace("torch.float16", "int8", 1), "extern_mm", 1)]), "two dtypes"),
        (log(LINES).replace("mat2_stride_1", "other"), "no feature 'mat2_stride_1'"),
        (log(LINES, (9, 0)), "chip of sm_90"),
        (log(LINES, (7, 7)), "chip of sm_77"),
        (gzip.compress(log(LINES).encode(), mtime=0)[:60], "not a whole gzip file"),
        (b"\x1f\x8bnothing", "not a whole gzip file"),
        (b"\xff\xfe{}", "no AutoHeuristic log"),
    ],
)
def test_a_broken_log_is_one_sentence(tmp_path, content, said):
    assert said in content_refusal(read_autoheuristic, tmp_path / "a100_mm.txt", content)


def test_the_decision_is_told_by_the_first_line_alone(tmp_path):
    file = tmp_path / "a100_flex.txt"
    file.write_text(log((), name="flex_attention") + "broken")
    assert decision_of(file) == "flex_attention"
    for content in ("", "{", "[]", "\x00" * 100):
        file.write_text(content)
        assert decision_of(file) == ""
