"""Imports are noticed without causing them."""

import importlib
import importlib.util
import sys
from types import ModuleType

import pytest

from torch_diode.integration.hooks.import_hook import ImportWatcher


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "watched.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "watched", raising=False)
    return "watched"


def test_the_callback_runs_once_after_the_import(module):
    values: list[int] = []
    watcher = ImportWatcher()
    watcher.when_imported(module, lambda imported: values.append(imported.value))
    spec = importlib.util.find_spec(module)
    assert spec.loader.get_source(module) == "value = 1\n"  # type: ignore[union-attr]
    assert values == []
    imported = importlib.import_module(module)
    assert values == [1]
    assert watcher not in sys.meta_path
    assert type(imported.__loader__).__name__ == "SourceFileLoader"
    assert imported.__spec__.loader is imported.__loader__


def test_for_an_imported_module_the_callback_runs_at_once(module):
    imported = importlib.import_module(module)
    modules: list[ModuleType] = []
    ImportWatcher().when_imported(module, modules.append)
    assert modules == [imported]


def test_a_cancelled_callback_does_not_run(module):
    modules: list[ModuleType] = []
    watcher = ImportWatcher()
    watcher.when_imported(module, modules.append)
    watcher.cancel(modules.append)
    assert watcher not in sys.meta_path
    importlib.import_module(module)
    assert modules == []


def test_a_missing_module_is_still_missing():
    watcher = ImportWatcher()
    watcher.when_imported("no_such_module_anywhere", print)
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("no_such_module_anywhere")
    watcher.cancel(print)
