#!/usr/bin/env bash
# Collect, train, create a validation set, validate: the whole workflow on this machine's GPU.
# Set any of these in the environment to change it, for example
#     NUM_SHAPES=1000 OUTPUT_DIR=run1 workflows/matmul_workflow.sh
set -euo pipefail

OUTPUT_DIR=${OUTPUT_DIR:-matmul_workflow}
FORMAT=${FORMAT:-parquet}
SEED=${SEED:-42}
OPERATIONS=${OPERATIONS:-mm addmm bmm}
DTYPES=${DTYPES:-bfloat16}
SEARCH_SPACE=${SEARCH_SPACE:-EXHAUSTIVE}
NUM_SHAPES=${NUM_SHAPES:-200}
VALIDATION_SHAPES=${VALIDATION_SHAPES:-50}
MODEL_TYPE=${MODEL_TYPE:-deep}
NUM_EPOCHS=${NUM_EPOCHS:-36}
TOP_N_WORST=${TOP_N_WORST:-10}
INIT_FROM=${INIT_FROM:-}         # shipped, or a model file: fine-tunes it
DEVICE=${DEVICE:-}               # such as cuda:1
TORCH_DIODE_COMMAND=${TORCH_DIODE_COMMAND:-torch-diode}

data=$OUTPUT_DIR/train.$FORMAT
validation=$OUTPUT_DIR/validation.$FORMAT
model=$OUTPUT_DIR/model.pt

# Word splitting of the lists is meant.
# shellcheck disable=SC2086
diode() { $TORCH_DIODE_COMMAND ${DEVICE:+--device "$DEVICE"} "$@"; }

mkdir -p "$OUTPUT_DIR"

if [[ -e $data ]]; then
  echo "== 1 of 4: $data exists"
else
  echo "== 1 of 4: collecting $data"
  # shellcheck disable=SC2086
  diode --format "$FORMAT" --seed "$SEED" collect --output "$data" --num-shapes "$NUM_SHAPES" \
    --search-space "$SEARCH_SPACE" --search-mode max-autotune --log-normal \
    --operations $OPERATIONS --dtypes $DTYPES
fi

echo "== 2 of 4: training $model"
diode --seed "$SEED" train --dataset "$data" --model "$model" --model-type "$MODEL_TYPE" \
  --num-epochs "$NUM_EPOCHS" --log-dir "$OUTPUT_DIR/logs" --overwrite \
  ${INIT_FROM:+--init-from "$INIT_FROM"}

if [[ -e $validation ]]; then
  echo "== 3 of 4: $validation exists"
else
  echo "== 3 of 4: collecting $validation"
  # shellcheck disable=SC2086
  diode --format "$FORMAT" --seed "$((SEED + 1))" create-validation --output "$validation" \
    --exclude "$data" --num-shapes "$VALIDATION_SHAPES" --search-space "$SEARCH_SPACE" \
    --search-mode max-autotune --log-normal --operations $OPERATIONS --dtypes $DTYPES
fi

echo "== 4 of 4: validating $model"
diode --seed "$SEED" validate-model --model "$model" --dataset "$validation" \
  --top-n-worst "$TOP_N_WORST"
