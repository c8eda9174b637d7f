import json
import os
from types import SimpleNamespace

import pytest
import torch

from torch_diode.hardware import cpu, detect, find, known
from torch_diode.hardware.detect import from_cuda_properties, from_xpu_properties
from torch_diode.types.errors import HardwareMismatchError, MissingPartError
from torch_diode.types.hardware import Hardware

# The fields torch.cuda.get_device_properties has on an H200.
H200 = SimpleNamespace(
    name="NVIDIA H200",
    major=9,
    minor=0,
    total_memory=150_000_000_000,
    multi_processor_count=132,
    warp_size=32,
    regs_per_multiprocessor=65536,
    max_threads_per_multi_processor=2048,
    shared_memory_per_block=49152,
    shared_memory_per_block_optin=232448,
    shared_memory_per_multiprocessor=233472,
    L2_cache_size=62914560,
    gcnArchName="NVIDIA H200",
)


def test_the_cpu_is_found_on_any_machine():
    chip = detect("cpu")
    assert chip.kind == "cpu"
    assert chip.units == len(os.sched_getaffinity(0))
    assert chip.threads == torch.get_num_threads()
    assert Hardware.from_dict(json.loads(json.dumps(chip.to_dict()))) == chip
    assert chip.memory_bytes > 0


def test_the_default_is_the_gpu_if_there_is_one():
    expected = "cpu"
    if torch.cuda.is_available():
        expected = "rocm" if torch.version.hip else "cuda"
    elif torch.xpu.is_available():
        expected = "xpu"
    assert detect().kind == expected


def test_reported_properties_override_published_ones():
    chip = from_cuda_properties(H200, hip=False)
    assert (chip.name, chip.kind, chip.arch) == ("nvidia-h200", "cuda", "sm_90")
    assert chip.shared_memory_per_block == 232448
    assert chip.memory_bytes == 150_000_000_000
    assert chip.tflops == known("nvidia-h200").tflops
    assert chip.memory_gbps == known("nvidia-h200").memory_gbps


def test_an_unknown_chip_has_its_reported_properties():
    chip = from_cuda_properties(SimpleNamespace(**{**vars(H200), "name": "NVIDIA X1"}), hip=False)
    assert (chip.name, chip.arch, chip.units, chip.tflops) == ("nvidia-x1", "sm_90", 132, ())


def test_missing_properties_are_taken_from_the_catalog():
    least = SimpleNamespace(
        name="NVIDIA H200", major=9, minor=0, total_memory=1 << 37, multi_processor_count=132
    )
    chip = from_cuda_properties(least, hip=False)
    assert chip.shared_memory_per_block == known("nvidia-h200").shared_memory_per_block


def test_amd_chips_have_their_gfx_architecture():
    amd = SimpleNamespace(
        name="AMD Instinct MI300X",
        gcnArchName="gfx942:sramecc+:xnack-",
        total_memory=206_158_430_208,
        multi_processor_count=304,
        warp_size=64,
    )
    chip = from_cuda_properties(amd, hip=True)
    assert (chip.name, chip.kind, chip.arch) == ("amd-instinct-mi300x", "rocm", "gfx942")
    nameless = from_cuda_properties(SimpleNamespace(**{**vars(amd), "name": ""}), hip=True)
    assert nameless.name == "gfx942"


def test_intel_chips_are_detected():
    intel = SimpleNamespace(
        name="Intel(R) Data Center GPU Max 1550",
        total_memory=68_719_476_736,
        gpu_subslice_count=64,
        sub_group_sizes=[16, 32],
        local_mem_size=131072,
        architecture=13136561920,
    )
    chip = from_xpu_properties(intel)
    assert (chip.name, chip.kind) == ("intel-data-center-gpu-max-1550", "xpu")
    assert (chip.units, chip.warp_size, chip.shared_memory_per_block) == (64, 32, 131072)


@pytest.mark.parametrize("device", ["cuda:x", "cuda:-1", "tpu", "cuda:0:0", "cpu:", "CUDA", " "])
def test_an_invalid_device_is_refused(device):
    with pytest.raises(MissingPartError, match="expected cuda, cuda:N, xpu, xpu:N or cpu"):
        detect(device)


def test_a_missing_device_is_refused():
    with pytest.raises(MissingPartError, match="no such device"):
        detect("cuda:999")


def test_a_cpu_of_the_catalog_need_not_be_here():
    zen5 = find("amd-zen5", threads=3)
    assert (zen5.threads, zen5.l2_bytes, "avx512f" in zen5.instruction_sets) == (3, 1 << 20, True)
    assert find("amd-zen5").threads == torch.get_num_threads()
    assert find("nvidia-h200", threads=3) == known("nvidia-h200")
    with pytest.raises(HardwareMismatchError, match="abacus-9"):
        find("abacus-9")


def test_this_machines_cpu_is_found_by_its_name(monkeypatch):
    monkeypatch.setattr(cpu, "cpu_name", lambda info: "abacus-8")
    assert find("abacus-8", 3) == cpu.detect_cpu(3)
