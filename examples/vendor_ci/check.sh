#!/usr/bin/env bash
# Collect, train, check the model against a limit, check conformance, write the report.
set -euo pipefail

OUTPUT_DIR=${OUTPUT_DIR:-nightly}
NUM_SHAPES=${NUM_SHAPES:-400}
VALIDATION_SHAPES=${VALIDATION_SHAPES:-60}
OPERATIONS=${OPERATIONS:-mm addmm bmm}
DTYPES=${DTYPES:-bfloat16}
NUM_EPOCHS=${NUM_EPOCHS:-36}
LARGEST_REGRET=${LARGEST_REGRET:-1.05}
here=$(cd "$(dirname "$0")" && pwd)

train=$OUTPUT_DIR/train.parquet
validation=$OUTPUT_DIR/validation.parquet
model=$OUTPUT_DIR/model.pt
mkdir -p "$OUTPUT_DIR"

# Word splitting of the lists is meant.
# shellcheck disable=SC2086
[[ -e $train ]] || torch-diode --seed 42 collect --output "$train" --num-shapes "$NUM_SHAPES" \
  --log-normal --operations $OPERATIONS --dtypes $DTYPES
# shellcheck disable=SC2086
[[ -e $validation ]] || torch-diode --seed 43 create-validation --output "$validation" \
  --exclude "$train" --num-shapes "$VALIDATION_SHAPES" --log-normal \
  --operations $OPERATIONS --dtypes $DTYPES

torch-diode --seed 42 train --dataset "$train" --model "$model" --num-epochs "$NUM_EPOCHS" --overwrite
torch-diode validate-model --model "$model" --dataset "$validation" --json >"$OUTPUT_DIR/scores.json"
torch-diode report --dataset "$validation" --model "$model" --output "$OUTPUT_DIR/report.html"
MODEL=$model python -m pytest "$here/test_conformance.py"
python "$here/gate.py" "$OUTPUT_DIR/scores.json" "$LARGEST_REGRET"
