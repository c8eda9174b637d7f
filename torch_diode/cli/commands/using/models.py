"""`torch-diode models`: list the models, or show a card."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch_diode.cli.console.output import note, print_json, print_line, print_table
from torch_diode.cli.options.parameters import flag, option
from torch_diode.files.file_errors import naming_file
from torch_diode.hardware import normalise
from torch_diode.model.registry import PATH_VARIABLE, ModelRegistry
from torch_diode.types.errors import EmptySelectionError, FileFaultError


def models(
    hardware: str | None = option("Only this hardware's."),
    card: str | None = option("Show the card of the model of this name."),
    as_json: bool = flag("The manifest, for programs.", "--json"),
) -> None:
    """List the models and their scores, or show a card.

    Those in the folders of TORCH_DIODE_MODEL_PATH come first.

    Example: torch-diode models --card matmul

    \b
    $ torch-diode models
    heuristic   hardware      name        kB   kind   trust               @1       @3   ...
    matmul      nvidia-h200   matmul   1,968   deep   decides alone   1.0110   1.0028   ...
    """
    registry = ModelRegistry()
    manifest = registry.manifest()
    unusable = manifest["unusable"]
    entries = manifest["models"]
    if hardware is not None:
        entries = [entry for entry in entries if entry["hardware"] == normalise(hardware)]
    if card is not None:
        entries = [entry for entry in entries if entry["name"] == card]
    if not as_json and card is None:
        for path, reason in unusable.items():
            note(f"{path}: not listed: {reason}")
    if not entries:
        wanted = " ".join(text for text in (card, hardware and f"for {hardware}") if text)
        raise EmptySelectionError(
            f"models: got no model {wanted}".rstrip()
            + f"; expected one in {', '.join(map(str, registry.folders))}; train one, or name its "
            f"folder in {PATH_VARIABLE}"
        )
    if as_json:
        print_json({**manifest, "models": entries})
    elif card is not None:
        for entry in entries:
            _show_card(entry)
    else:
        names = ("heuristic", "hardware", "name", "kB", "kind", "trust")
        scores = ("@1", "@3", "@5", "torch", "triton")
        print_table((*names, *scores), map(_row, entries), right="lllrllrrrll")
        for entry in entries:
            print_line(entry["path"])


def _row(entry: dict[str, Any]) -> tuple[Any, ...]:
    data = entry["card"] or {}
    scores = data.get("held_out", {}).get("model", {}).get("all", [])
    means: list[str | None] = [f"{score['geomean']:.4f}" for score in scores[:3]] or [None] * 3
    releases = (", ".join(data.get(name, ())) or None for name in ("torch", "triton"))
    return (
        *(entry[name] for name in ("heuristic", "hardware", "name")),
        round(entry["bytes"] / 1e3),
        data.get("kind"),
        _trust(data),
        *means,
        *releases,
    )


def _trust(card: dict[str, Any]) -> str | None:
    """Whether a model decides alone on its hardware; older cards do not tell."""
    alone = card.get("decides_alone")
    return None if alone is None else "decides alone" if card["hardware"] in alone else "shortlists"


def _show_card(entry: dict[str, Any]) -> None:
    path = Path(entry["path"]).with_suffix(".md")
    if path.is_file():
        with naming_file(path):
            print_line(path.read_text(encoding="utf-8", errors="replace"))
    elif entry["card"] is not None:
        print_json(entry["card"])
    else:
        raise FileFaultError(
            f"{entry['path']}: got no card beside it; write one with validate-model --write-card"
        )
