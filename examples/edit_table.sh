#!/usr/bin/env bash
# Build a lookup table from timings, edit it by hand, and use it. Run it from the checkout, or set
# DATASET to timings of your own.
set -euo pipefail

DATASET=${DATASET:-diode_datasets/matmul/nvidia-h200/validation}
HARDWARE=${HARDWARE:-nvidia-h200}
PROBLEM=${PROBLEM:-mm:128x2048x512:bfloat16:nt}
OUTPUT_DIR=${OUTPUT_DIR:-.}

table=$OUTPUT_DIR/table.json
edited=$OUTPUT_DIR/edited.json

echo "== the three fastest candidates of every mm that was timed"
torch-diode table build --dataset "$DATASET" --output "$table" --k 3 --operations mm --overwrite
torch-diode table show "$table" --problem "$PROBLEM"

echo "== the second one of this problem put first"
if command -v jq >/dev/null; then
  jq --arg chip "$HARDWARE" --arg problem "$PROBLEM" \
    '.hardware[$chip][$problem] |= [.[1], .[0]] + .[2:]' "$table" >"$edited"
else
  python3 - "$table" "$edited" "$HARDWARE" "$PROBLEM" <<'PYTHON'
import json, sys
table, edited, chip, problem = sys.argv[1:]
data = json.load(open(table))
row = data["hardware"][chip][problem]
row[0], row[1] = row[1], row[0]
json.dump(data, open(edited, "w"), indent=1)
PYTHON
fi
torch-diode table show "$edited" --problem "$PROBLEM"

echo "== to decide with it:  TORCH_DIODE_TABLE=$edited python your_program.py"
echo "== where torch-diode is not installed, torch reads this:"
torch-diode table export "$edited" --inductor --output "$OUTPUT_DIR/inductor_table.json" --overwrite
