import pytest

from torch_diode.hardware import cpu, known, known_names

X86 = """processor\t: 0
vendor_id\t: {vendor}
cpu family\t: {family}
model\t\t: {model}
model name\t: {brand}
stepping\t: {stepping}
flags\t\t: fpu sse2 avx avx2 fma avx512f avx512_bf16

processor\t: 1
vendor_id\t: {vendor}
cpu family\t: 99
"""
ARM = """processor\t: 0
Features\t: fp asimd sve sve2 bf16 i8mm
CPU implementer\t: 0x41
CPU architecture: 8
CPU part\t: {part}
"""


def x86(vendor: str, family: int, model: int, stepping: int = 0, brand: str = "AMD EPYC") -> str:
    text = X86.format(vendor=vendor, family=family, model=model, stepping=stepping, brand=brand)
    return cpu.cpu_name(cpu.parse_cpuinfo(text))


@pytest.mark.parametrize(
    ("vendor", "family", "model", "stepping", "name"),
    [
        ("AuthenticAMD", 0x17, 0x31, 0, "amd-zen2"),
        ("AuthenticAMD", 0x19, 0x01, 0, "amd-zen3"),
        ("AuthenticAMD", 0x19, 0x11, 0, "amd-zen4"),
        ("AuthenticAMD", 0x19, 0x21, 0, "amd-zen3"),
        ("AuthenticAMD", 0x1A, 0x02, 0, "amd-zen5"),
        ("GenuineIntel", 6, 0x8F, 8, "intel-sapphire-rapids"),
        ("GenuineIntel", 6, 0x6A, 6, "intel-ice-lake"),
        ("GenuineIntel", 6, 0x55, 4, "intel-skylake-sp"),
        ("GenuineIntel", 6, 0x55, 7, "intel-cascade-lake"),
    ],
)
def test_a_cpu_is_named_by_family_model_and_stepping(vendor, family, model, stepping, name):
    assert x86(vendor, family, model, stepping) == name


@pytest.mark.parametrize(
    ("part", "name"), [("0xd0c", "arm-neoverse-n1"), ("0xd4f", "arm-neoverse-v2")]
)
def test_an_arm_cpu_is_named_by_its_part(part, name):
    info = cpu.parse_cpuinfo(ARM.format(part=part))
    assert cpu.cpu_name(info) == name
    assert cpu.instruction_sets(info) == ("asimd", "sve", "sve2", "bf16", "i8mm")


@pytest.mark.parametrize(
    ("brand", "name"),
    [
        ("Intel(R) Xeon(R) Platinum 9999C CPU @ 2.70GHz", "intel-xeon-platinum-9999c"),
        ("AMD EPYC 9Z99 96-Core Processor", "amd-epyc-9z99"),
    ],
)
def test_a_cpu_that_is_not_in_the_tables_is_named_by_its_brand(brand, name):
    assert x86("GenuineIntel", 0x42, 1, brand=brand) == name


@pytest.mark.parametrize(
    ("model", "amx", "name"),
    [
        (0xA7, "", "intel-rocket-lake"),
        (0xA7, "amx_tile amx_bf16", "intel-sapphire-rapids"),
        (0xA7, "amx_tile amx_bf16 amx_fp16", "intel-granite-rapids"),
        (0xCF, "amx_tile amx_bf16", "intel-emerald-rapids"),
    ],
)
def test_a_model_number_that_a_virtual_machine_made_up_gives_way_to_the_instructions(
    model, amx, name
):
    info = {"vendor_id": "GenuineIntel", "cpu family": "6", "model": str(model), "flags": amx}
    assert cpu.cpu_name(info) == name


def test_only_instruction_sets_for_matrix_kernels_are_kept():
    info = cpu.parse_cpuinfo(X86.format(vendor="", family=0, model=0, stepping=0, brand=""))
    assert cpu.instruction_sets(info) == ("avx", "avx2", "fma", "avx512f", "avx512_bf16")


def test_the_data_caches_of_a_core_are_read_by_level(tmp_path, monkeypatch):
    caches = [("Data", 1, "32K"), ("Instruction", 1, "64K"), ("Unified", 3, "32768K")]
    for number, (kind, level, size) in enumerate(caches):
        folder = tmp_path / f"index{number}"
        folder.mkdir()
        for name, text in (("type", kind), ("level", str(level)), ("size", size)):
            (folder / name).write_text(f"{text}\n")
    monkeypatch.setattr(cpu, "_CACHES", tmp_path)
    found = cpu.detect_cpu(threads=7)
    published = known(found.name).l2_bytes if found.name in known_names() else 0
    assert (found.l1_bytes, found.l2_bytes, found.l3_bytes) == (32 << 10, published, 32 << 20)
    assert found.threads == 7
