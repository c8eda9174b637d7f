#!/usr/bin/env bash
# Timing kernels on a fleet of machines with one kind of GPU.
#
#     pip install '.[cluster]'                     on every machine, in a checkout
#     fleet_collection.sh head                     on one of them
#     fleet_collection.sh node HEAD_HOST           on each of the others
#     fleet_collection.sh collect HEAD_HOST:6379   anywhere; run it again to resume after a kill
set -euo pipefail

OUTPUT=${OUTPUT:-timings.parquet}
NUM_SHAPES=${NUM_SHAPES:-10000}
OPERATIONS=${OPERATIONS:-mm addmm bmm}
DTYPES=${DTYPES:-bfloat16}
SEED=${SEED:-42}
DEVICE=${DEVICE:-}       # cpu times ATen only: good for a dry run
EXTRA=${EXTRA:-}         # further options of collect, such as --max-size 4096

usage() { sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 2; }

case ${1:-} in
  head) ray start --head --port 6379 ;;
  node) ray start --address "${2:?the head\'s host}:6379" ;;
  collect)
    # Word splitting of the lists is meant.
    # shellcheck disable=SC2086
    torch-diode --seed "$SEED" ${DEVICE:+--device "$DEVICE"} collect --ray "${2:?HOST:6379}" \
      --output "$OUTPUT" --num-shapes "$NUM_SHAPES" --log-normal \
      --operations $OPERATIONS --dtypes $DTYPES $EXTRA
    torch-diode stats "$OUTPUT" --limit 5
    ;;
  *) usage ;;
esac
