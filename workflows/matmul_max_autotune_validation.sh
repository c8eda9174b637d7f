#!/usr/bin/env bash
# Compare a model's first choices with the configs of a max-autotune solution, per operation.
# Set any of these in the environment to change it, for example
#     MODEL=model.pt DATASET=validation.parquet workflows/matmul_max_autotune_validation.sh
set -euo pipefail

MODEL=${MODEL:-shipped}
DATASET=${DATASET:-matmul_workflow/validation.parquet}
SOLUTION=${SOLUTION:-max_autotune_solution.json}   # made from the dataset if missing
OUTPUT=${OUTPUT:-model_performance_analysis_by_op.json}
BATCH_SIZE=${BATCH_SIZE:-256}
SEED=${SEED:-42}
TORCH_DIODE_COMMAND=${TORCH_DIODE_COMMAND:-torch-diode}

# Word splitting of the command is meant.
# shellcheck disable=SC2086
$TORCH_DIODE_COMMAND --seed "$SEED" validate-max-autotune --model "$MODEL" --dataset "$DATASET" \
  --max-autotune-solution "$SOLUTION" --batch-size "$BATCH_SIZE" --output "$OUTPUT"
