import os
from pathlib import Path

from workflows.measuring.private_caches import private_caches

NAMES = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")


def test_caches_are_empty_and_deleted_afterwards(monkeypatch):
    monkeypatch.setenv(NAMES[0], "mine")
    monkeypatch.delenv(NAMES[1], raising=False)
    with private_caches():
        folders = [Path(os.environ[name]) for name in NAMES]
        for folder in folders:
            folder.mkdir()
            (folder / "kernel").touch()
    assert not any(folder.parent.exists() for folder in folders)
    assert os.environ[NAMES[0]] == "mine"
    assert NAMES[1] not in os.environ


def test_caches_in_a_given_folder_are_kept(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with private_caches(Path("kernels")):
        folder = Path(os.environ[NAMES[0]])
        folder.mkdir(parents=True)
    assert folder == tmp_path / "kernels" / "inductor"
    assert folder.exists()
