"""Links, files, commands and names in the pages exist, and the reference is complete."""

import re
import shutil
import subprocess
import sys

import pytest

import torch_diode
from tests.docs.pages import PAGES, ROOT

INCLUDING = ("changelog.md", "contributing.md", "counts.md", "data_card.md", "model_card.md")
"""Pages that only include a file from elsewhere."""
_LINK = re.compile(r"\]\((?!https?://|#|mailto:)([^)#\s]+)")


def test_every_public_name_is_in_the_api_page():
    text = (ROOT / "docs/api.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"torch_diode\.(\w+)$", text, re.MULTILINE))
    assert set(torch_diode.__all__) - shown == set()


@pytest.mark.parametrize("page", PAGES)
def test_links_within_the_project_exist(page):
    path = ROOT / page
    links = _LINK.findall(path.read_text(encoding="utf-8"))
    assert [link for link in links if not (path.parent / link).exists()] == []


def test_every_file_in_the_architecture_exists():
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    files = re.findall(r"`([\w/]+\.py)`", text)
    assert len(files) > 40
    missing = {f for f in files if not ((ROOT / "torch_diode" / f).exists() or (ROOT / f).exists())}
    assert missing == set()


def test_every_command_is_in_the_commands_page():
    from torch_diode.cli.app import app

    text = (ROOT / "docs/commands.md").read_text(encoding="utf-8")
    names = [command.name for command in app.registered_commands]
    assert [name for name in names if f"`{name}`" not in text] == []


def test_every_switch_is_in_the_settings():
    source = (ROOT / "torch_diode/integration/settings.py").read_text(encoding="utf-8")
    switches = set(re.findall(r'"(TORCH_DIODE\w*)"', source))
    text = (ROOT / "docs/settings.md").read_text(encoding="utf-8")
    assert len(switches) == 10
    assert [name for name in switches if name not in text] == []


def test_the_pages_are_short():
    """Whatever is written by script or included from elsewhere does not count."""
    pages = [page for page in (ROOT / "docs").glob("*.md") if page.name not in INCLUDING]
    words = sum(len(page.read_text(encoding="utf-8").split()) for page in pages)
    assert words <= 9000
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120


def test_every_page_is_in_the_table_of_contents():
    index = (ROOT / "docs/index.md").read_text(encoding="utf-8").split()
    pages = {page.stem for page in (ROOT / "docs").glob("*.md")} - {"index", "counts"}
    assert [page for page in pages if page not in index] == []


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path):
    pytest.importorskip("sphinx")
    pytest.importorskip("furo")
    pytest.importorskip("myst_parser")
    docs = tmp_path / "docs"
    shutil.copytree(ROOT / "docs", docs, ignore=shutil.ignore_patterns("_build"))
    for name in ("benchmarks", "examples", "diode_datasets", "trained_models"):
        (tmp_path / name).symlink_to(ROOT / name)
    for name in ("CONTRIBUTING.md", "CHANGELOG.md"):
        shutil.copy(ROOT / name, tmp_path / name)
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", docs, tmp_path / "out"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "out/index.html").is_file()
