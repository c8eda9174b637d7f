"""Model card: scores and origin of a model as JSON, as Markdown and in plots, written from the
evaluation that the command line prints."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from torch_diode.files.atomic import refuse_existing, write_text
from torch_diode.files.file_errors import naming_file
from torch_diode.files.json import write_json
from torch_diode.model.evaluation import plots
from torch_diode.model.evaluation.over_plain import SLOWER, OverPlain
from torch_diode.model.evaluation.regret import KS, Score
from torch_diode.model.evaluation.scoring import EvaluatedPredictions, Evaluation
from torch_diode.model.metadata import FORMAT, ModelMetadata
from torch_diode.types.errors import FileFaultError, MissingPartError

_DEPTH = 5
"""Levels of the JSON card that are spread over lines: a score is on one."""
_TITLE = "# Model `"
_HEAD = 4096
"""Bytes within which a card names its format."""


def check_card(model: Path, overwrite: bool) -> None:
    """Refuse a model with a card, unless that may be overwritten; and in any case one whose card
    would take the place of another kind of file, such as its own data."""
    for ending, mark in ((".json", FORMAT), (".md", _TITLE)):
        path = model.with_suffix(ending)
        if not path.exists():
            continue
        with naming_file(path), path.open("rb") as stream:
            head = stream.read(_HEAD)
        if mark.encode() not in head:
            raise FileFaultError(
                f"{path}: exists and is no model's card, which would take its place; give the "
                "model another name"
            )
    for path in _files(model):
        refuse_existing(path, overwrite)


def _files(model: Path) -> list[Path]:
    """The files of a card: numbers, text and plots."""
    plots = [model.with_name(name) for name in _plot_names(model).values()]
    return [model.with_suffix(".json"), model.with_suffix(".md"), *plots]


def write_card(
    model: Path,
    metadata: ModelMetadata,
    predictions: EvaluatedPredictions,
    judged_on: str,
    notes: Sequence[str] = (),
    overwrite: bool = True,
) -> list[Path]:
    """Write the card beside a model file and return the paths. Without matplotlib there are no
    plots, and the card says so."""
    check_card(model, overwrite)
    evaluation = predictions.evaluation
    path = model.with_suffix(".json")
    data: dict[str, Any] = json.loads(metadata.to_json())
    del data["feature_names"], data["scores"], data["configs"]
    data |= {"held_out": evaluation.to_dict(), "judged_on": judged_on, "notes": list(notes)}
    write_json(path, data, _DEPTH, overwrite)
    try:
        pictures, missing = _draw(model, predictions), ""
    except MissingPartError as fault:
        pictures, missing = {}, str(fault)
    text = markdown(model.stem, metadata, evaluation, judged_on, [*notes, missing], pictures)
    write_text(model.with_suffix(".md"), text, overwrite)
    return [path, model.with_suffix(".md"), *(model.with_name(name) for name in pictures.values())]


def _plot_names(model: Path) -> dict[str, str]:
    return {
        "Regret@k": f"{model.stem}-regret.svg",
        "Slices": f"{model.stem}-slices.svg",
        "Predicted against measured": f"{model.stem}-times.png",
    }


def _draw(model: Path, predictions: EvaluatedPredictions) -> dict[str, str]:
    names = _plot_names(model)
    regret, slices, times = (model.with_name(name) for name in names.values())
    plots.regret_curve(regret, predictions.evaluation)
    plots.slice_bars(slices, predictions.evaluation)
    plots.predicted_against_measured(times, predictions.table.time_us, predictions.predicted)
    return names


def markdown(
    name: str,
    metadata: ModelMetadata,
    evaluation: Evaluation,
    judged_on: str,
    notes: Sequence[str],
    pictures: dict[str, str],
) -> str:
    """Format the card for people."""
    parts = [
        f"{_TITLE}{name}` for {metadata.hardware}",
        f"A `{metadata.kind}` network ({_shape(metadata)}) that predicts the time of each way to "
        f"run a matrix multiplication on {metadata.hardware} ({metadata.arch}). "
        f"Judged on {judged_on}.",
        "Regret@k: the best time among the k candidates ranked first, over the best time of all "
        "candidates timed, as a geometric mean over problems. 1 is perfect.",
        "## Scores",
        _table(
            ("", "problems", *(f"@{k}" for k in KS), "p95@1", "p99@1", "worst@1"),
            regret_rows(evaluation, "**model**", missing=""),
        ),
        *[f"- {note}" for note in notes if note],
        *([_picture("Regret@k", pictures)] if pictures else []),
        "## Slices",
        _table(
            ("slice", "problems", "@1", "@3", "@5", "p99@1", "ATen alone"),
            list(_slices(evaluation)),
        ),
        *([_picture("Slices", pictures)] if pictures else []),
        *_over_plain(evaluation),
        "## Error of the times",
        _table(
            ("timings of", "timings", "MSE (log)", "RMSE (log)", "as a factor", "median factor"),
            [
                (
                    part,
                    f"{e['rows']:,.0f}",
                    *(f"{e[n]:.4f}" for n in ("mse", "rmse")),
                    *(f"{e[n]:.3f}" for n in ("factor", "median")),
                )
                for part, e in evaluation.errors.items()
            ],
        ),
        "`near` are configs within 1.5 times the best: those that matter.",
        *([_picture("Predicted against measured", pictures)] if pictures else []),
        "## Where it comes from",
        _table(("what", ""), _origin(metadata)),
    ]
    return "\n\n".join(parts) + "\n"


def regret_rows(evaluation: Evaluation, model: str, missing: str) -> list[Sequence[str]]:
    """Rows of the regret of a model, of noise alone and of the baselines: problems, the regret at
    each k, its quantiles at 1 and its maximum."""

    def numbers(name: str, scores: Sequence[Score]) -> Sequence[str]:
        means = [f"{score.geomean:.4f}" for score in scores]
        first = scores[0]
        rest = [f"{value:.3f}" for value in (first.p95, first.p99, first.max)]
        return name, f"{first.problems:,}", *means, *[missing] * (len(KS) - len(means)), *rest

    rows = [numbers(model, evaluation.model["all"])]
    if evaluation.noise:
        blank = ("", "", "")
        rows.append(("noise alone", "", *(f"{value:.4f}" for value in evaluation.noise), *blank))
    if evaluation.aten:
        rows.append(numbers("ATen alone", evaluation.aten["all"]))
    return [*rows, *(numbers(name, slices["all"]) for name, slices in evaluation.baselines.items())]


def _slices(evaluation: Evaluation) -> list[Sequence[str]]:
    rows: list[Sequence[str]] = []
    for name, scores in evaluation.model.items():
        aten = f"{evaluation.aten[name][0].geomean:.4f}" if name in evaluation.aten else ""
        means = (f"{score.geomean:.4f}" for score in scores[:3])
        rows.append((name, f"{scores[0].problems:,}", *means, f"{scores[0].p99:.3f}", aten))
    return rows


def _over_plain(evaluation: Evaluation) -> Iterator[str]:
    """Decisions over plain torch's on a CPU, for each offer of a compile."""
    if evaluation.over_plain:
        yield "## Over plain torch"
        yield (
            "Time of what is chosen over that of what plain torch runs. `unfrozen`: ATen and "
            "oneDNN on offer; `frozen`: packed weights and templates, without ATen. Above "
            f"{SLOWER}: beyond the noise of both times; unsure: timed once only, since it seemed "
            "far from the best."
        )
    above = f"above {SLOWER}"
    head = ("slice", "problems", "chosen", "best", "p99", "worst", above, "unsure", "not plain")
    for offer, slices in evaluation.over_plain.items():
        yield f"### {offer.capitalize()}"
        yield _table(head, over_plain_rows(slices))


def over_plain_rows(slices: Mapping[str, OverPlain]) -> list[Sequence[Any]]:
    """Rows of a CPU's decisions over plain torch's, slice by slice."""
    return [
        (name, f"{s.problems:,}", f"{s.geomean:.4f}", f"{s.best:.4f}", f"{s.p99:.3f}",
         f"{s.worst:.3f}", s.slower, s.unsure, f"{s.changed:.0%}")
        for name, s in slices.items()
    ]  # fmt: skip


def _origin(metadata: ModelMetadata) -> list[Sequence[str]]:
    options = metadata.options
    rows: list[Sequence[str]] = [
        ("covers", ", ".join(metadata.covers)),
        ("decides alone on", ", ".join(metadata.decides_alone) or "no hardware"),
        ("shortlists for max-autotune on", _shortlists_on(metadata)),
        *([("threads", ", ".join(map(str, metadata.threads)))] if metadata.threads else []),
        *([("candidates", ", ".join(metadata.labels))] if metadata.labels else []),
        ("sizes in training", "; ".join(f"{n} {_range(r)}" for n, r in metadata.ranges.items())),
        ("measured with torch", ", ".join(metadata.torch) or "not recorded"),
        ("and triton", ", ".join(metadata.triton) or "not recorded"),
        *((f"timings: {name}", ", ".join(texts)) for name, texts in metadata.provenance.items()),
        ("dataset", f"`{metadata.dataset_digest}`"),
        ("features version", str(metadata.features_version)),
        ("options", ", ".join(f"{k} {v}" for k, v in sorted(options.items()) if k != "shape")),
    ]
    if metadata.configs:
        count = sum(map(len, metadata.configs.values()))
        rows.append(("configs it predicts", f"{count}, those that were timed"))
    return rows


def _shortlists_on(metadata: ModelMetadata) -> str:
    own = [] if metadata.hardware in metadata.decides_alone else [metadata.hardware]
    return ", ".join([*own, "no other CPU" if metadata.threads else "its close relatives"])


def _range(ends: Sequence[float]) -> str:
    return f"{ends[0]:.4g} to {ends[1]:.4g}"


def _shape(metadata: ModelMetadata) -> str:
    return ", ".join(f"{name} {width}" for name, width in sorted(metadata.shape.items()))


def _picture(title: str, pictures: dict[str, str]) -> str:
    return f"![{title}]({pictures[title]})"


def _table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
