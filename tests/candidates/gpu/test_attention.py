import itertools

import pytest

from torch_diode.candidates.gpu.attention import (
    KINDS,
    PATH,
    configs_of,
    fits_chip,
    kernel_name,
    measured_attention,
    nearest,
    padded,
    read_measured,
    tile_of,
)
from torch_diode.hardware import known
from torch_diode.types.candidate import KernelConfig
from torch_diode.types.errors import FileFaultError

RTX_3090, RTX_4090, RTX_5090 = (f"nvidia-geforce-rtx-{name}" for name in (3090, 4090, 5090))
CHIPS = (RTX_3090, RTX_4090, RTX_5090, "nvidia-a100", "nvidia-h100", "nvidia-b200")
PRECISIONS = ("bfloat16", "float32", "tf32")
HEAD_DIMS = (64, 128, 256)


def config(kind, *sizes):
    *blocks, stages, warps = sizes
    return KernelConfig(tuple(zip(KINDS[kind], blocks, strict=True)), stages, warps)


def table(chip, kind="forward", precision="bfloat16", head_dim=128):
    return measured_attention(kind, precision, known(chip), head_dim)


@pytest.mark.parametrize(
    ("chip", "kind", "head_dim", "sizes", "needed"),
    [
        (RTX_5090, "backward", 256, (64, 64, 64, 64, 1, 4), 114_688),
        (RTX_5090, "backward", 192, (64, 64, 64, 64, 1, 4), 114_688),
    ],
)
def test_the_needs_are_those_in_users_reports(chip, kind, head_dim, sizes, needed):
    row = table(chip, kind, head_dim=head_dim)[config(kind, *sizes)]
    assert row[0] == needed
    assert not fits_chip(row, known(chip))


@pytest.mark.parametrize("chip", CHIPS)
def test_every_chip_precision_and_head_dimension_has_kernels_that_fit(chip):
    for kind, precision, head_dim in itertools.product(KINDS, PRECISIONS, HEAD_DIMS):
        kernels = table(chip, kind, precision, head_dim)
        assert any(fits_chip(row, known(chip)) for row in kernels.values()), (
            kind,
            precision,
            head_dim,
        )


@pytest.mark.parametrize("chip", CHIPS)
def test_whatever_does_not_fit_has_a_smaller_config_that_does(chip):
    hardware = known(chip)
    for kind, precision, head_dim in itertools.product(KINDS, PRECISIONS, HEAD_DIMS):
        kernels = table(chip, kind, precision, head_dim)
        fitting = [each for each, row in kernels.items() if fits_chip(row, hardware)]
        for each, row in kernels.items():
            instead = nearest(each, fitting)
            if row[0] < 0:
                continue
            assert instead is not None, (kind, precision, head_dim, each)
            assert instead.is_within(each)
            assert (instead == each) == fits_chip(row, hardware)


@pytest.mark.parametrize("arch", ["sm_80", "sm_89", "sm_120"])
def test_kernels_of_these_architectures_need_the_same_shared_memory(arch):
    rows = {
        name: dict(configs_of(name.split("/")[0], r)) for name, r in read_measured(PATH).items()
    }
    compared = 0
    for name, kernels in rows.items():
        if name.endswith(arch):
            others = rows.get(name.replace(arch, "sm_86"), {})
            for each in kernels.keys() & others.keys():
                assert kernels[each][0] == others[each][0], (name, each)
                compared += 1
    assert compared >= 10


def test_a_row_serves_other_dtypes_of_two_bytes_and_head_dimensions_below_it():
    assert padded(65) == padded(96) == padded(128) == 128
    assert padded(1) == 16
    assert kernel_name("forward", "float16", "sm_86", 192) == "forward/bfloat16/256/sm_86"
    assert kernel_name("forward", "bfloat16", "sm_86", 192, 128) == "forward/bfloat16/256x128/sm_86"
    assert table(RTX_3090, head_dim=96) == table(RTX_3090, head_dim=128) != {}


def test_a_chip_without_measurements_has_none():
    assert table("nvidia-t4") == {}
    assert table("amd-instinct-mi300x") == {}


def test_the_nearest_gives_up_stages_before_blocks():
    large = config("forward", 128, 64, 3, 4)
    halved, shallow, both = (
        large.changed(**changed)
        for changed in ({"block_n": 32}, {"num_stages": 2}, {"block_n": 32, "num_stages": 2})
    )
    assert nearest(large, [both, halved, shallow]) == shallow
    assert nearest(large, [both, halved]) == halved
    assert nearest(shallow, [halved, large]) is None
    assert nearest(large, [large, shallow]) == large


def test_a_tile_is_a_blocks_scores_and_its_edges_are_its_rows_and_columns():
    assert tile_of(config("forward", 128, 64, 3, 4), 4096) == (128 * 64, 128 + 64)
    assert tile_of(config("backward", 32, 64, 128, 32, 1, 4), 4096) == (128 * 32, 128 + 32)
    assert tile_of(config("decode", 64, 1, 2), 17) == (64 * 32, 64 + 32)
    assert tile_of(config("decode", 64, 1, 2), 0) == (64 * 16, 64 + 16)


def test_the_file_names_what_it_was_measured_with_and_another_is_refused(tmp_path):
    rows = read_measured(PATH)
    assert dict(configs_of("forward", [[128, 64, 3, 8, 1, 2, 3]])) == {
        config("forward", 128, 64, 3, 8): (1, 2, 3)
    }
    assert all(name.split("/")[0] in KINDS for name in rows)
    (tmp_path / "other.json").write_text('{"version": 2}')
    with pytest.raises(FileFaultError, match="expected measured kernels of version 1"):
        read_measured(tmp_path / "other.json")
    with pytest.raises(FileFaultError, match="expected measured kernels as JSON"):
        read_measured(tmp_path / "missing.json")
