"""Options of training; light, since `--help` loads them."""

from __future__ import annotations

from pathlib import Path

from torch_diode.cli.options.parameters import option, options_of
from torch_diode.model.registry import SHIPPED
from torch_diode.toolkit.training.options import MODEL_TYPES, TrainOptions

MODEL_TO_WRITE = "Model file to write, .pt or .safetensors."

TRAINING = options_of(
    TrainOptions,
    model_type=option(
        "Network: base (feed-forward) or deep (residual; default) on GPUs, library on CPUs.",
        values=MODEL_TYPES,
    ),
    batch_size=option("Problems per step (128).", min=1, rare=True),
    num_epochs=option("Times through the data (36; 12 with --init-from).", min=1),
    minutes=option("Train for so long at most, without reading the data and scoring."),
    learning_rate=option("Peak learning rate (0.004; 0.0002 with --init-from).", rare=True),
    weight_decay=option("Weight decay (0.001).", min=0, rare=True),
    patience=option(
        "Epochs without a better validation regret, then it stops (12).", min=1, rare=True
    ),
    test_share=option(
        "Share of the problems held out for the scores (0.15).", min=0, max=0.9, rare=True
    ),
    validation_share=option(
        "Share of the problems to stop by (0.1).", min=0.001, max=0.9, rare=True
    ),
    hidden_dim=option("Width of the layers (96).", min=1, max=4096, rare=True),
    num_layers=option("Layers (2).", min=1, max=64, rare=True),
    log_dir=option("Folder for the loss and regret curves, as CSV and SVG.", default=Path("logs")),
    init_from=option(
        "Start from a trained model: its file, or `shipped` (fine-tuning).", values=[SHIPPED]
    ),
    teachers=option(
        "Wider networks to distill into the model, each trained by a process of its own (0; the "
        "shipped model has 5).",
        min=0,
        max=32,
    ),
    must_beat_aten=option(
        "Write no model, and exit with 1, if ATen alone is better in any op or dtype.",
        "--must-beat-aten",
    ),
)
