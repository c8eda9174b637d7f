"""A module's import is noticed without causing it."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from torch_diode.integration.hooks.import_hook import ImportWatcher


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "arriving.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "arriving", raising=False)
    return "arriving"


def test_the_callback_comes_after_the_import_and_once(module: str) -> None:
    seen: list[int] = []
    import_watcher = ImportWatcher()
    import_watcher.when_imported(module, lambda found: seen.append(found.value))
    assert seen == []
    imported = importlib.import_module(module)
    assert seen == [1]
    assert import_watcher not in sys.meta_path
    assert type(imported.__loader__).__name__ == "SourceFileLoader"
    assert imported.__spec__ is not None
    assert imported.__spec__.loader is imported.__loader__


def test_a_module_already_there_is_told_at_once(module: str) -> None:
    importlib.import_module(module)
    seen: list[ModuleType] = []
    ImportWatcher().when_imported(module, seen.append)
    assert [found.__name__ for found in seen] == [module]


def test_who_is_forgotten_is_not_told(module: str) -> None:
    seen: list[ModuleType] = []
    import_watcher = ImportWatcher()
    import_watcher.when_imported(module, seen.append)
    import_watcher.forget(seen.append)
    assert import_watcher not in sys.meta_path
    importlib.import_module(module)
    assert seen == []


def test_while_it_waits_a_module_can_be_looked_at(module: str) -> None:
    import_watcher = ImportWatcher()
    import_watcher.when_imported(module, lambda found: None)
    spec = importlib.util.find_spec(module)
    assert spec is not None
    assert spec.loader.get_source(module) == "value = 1\n"  # type: ignore[union-attr]
    importlib.import_module(module)


def test_a_missing_module_is_still_missing() -> None:
    import_watcher = ImportWatcher()
    import_watcher.when_imported("no_such_module_anywhere", lambda found: None)
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("no_such_module_anywhere")
    import_watcher.forget(import_watcher._waiting["no_such_module_anywhere"][0])
