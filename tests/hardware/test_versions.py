import importlib.metadata

import pytest
import torch

from torch_diode.hardware.versions import same_release, versions


def test_installed_versions_have_no_build_suffix():
    assert versions()["torch"] == torch.__version__.partition("+")[0]


def test_a_package_without_a_distribution_of_its_name_is_imported_for_its_version(monkeypatch):
    def unknown(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", unknown)
    assert versions()["torch"] == torch.__version__.partition("+")[0]


@pytest.mark.parametrize(
    ("version", "others", "same"),
    [
        ("2.11.0", ["2.11.0"], True),
        ("2.11.1+cu130", ["2.9.1", "2.11.0"], True),
        ("2.11.0", ["2.1.0", "2.12.0"], False),
        ("3.6.0+git1234", ["3.6"], True),
        ("", ["2.11.0"], False),
        ("2.11.0", [], False),
    ],
)
def test_releases_are_compared_without_patch_and_build(version, others, same):
    assert same_release(version, others) is same
