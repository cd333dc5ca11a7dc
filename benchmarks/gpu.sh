#!/usr/bin/env bash
# Everything a CUDA machine should answer, in one call of at most 8 minutes; call it again to go on
# with the training.
#
#   benchmarks/gpu.sh IMAGES RESULTS      IMAGES: CIFAR-10 by class, folder or archive
#
# Environment, for a trial on a CPU: DEVICE=cpu BATCH=8 ROUNDS=1 EPOCHS=1 LIMIT=256 SECONDS_EACH=60
set -uo pipefail
images=$(realpath "$1") results=$2
device=${DEVICE:-cuda} batch=${BATCH:-1024} rounds=${ROUNDS:-10}
epochs=${EPOCHS:-300} seconds=${SECONDS_EACH:-40} limit=${LIMIT_SECONDS:-470}
python=${PYTHON:-python3}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$results"

for precision in float32 tf32 bfloat16; do
  for mode in eager compile; do
    table=$results/step_time_${precision}_$mode.json
    [ -s "$table" ] && continue
    flag=$([ "$mode" = compile ] && echo --compile)
    # shellcheck disable=SC2086
    timeout "$seconds" "$python" "$here/step_time.py" --device "$device" --batch "$batch" \
      --rounds "$rounds" --precision "$precision" $flag --json "$table" \
      --only on_manifold parametrised unconstrained twin || echo "$table: not finished"
  done
done

"$python" "$here/latency.py" --device "$device" --rounds "$rounds" \
  --json "$results/latency.json" || echo "latency: not finished"

# Accuracy against wall time: history.csv of the run gains one line an epoch, with its seconds.
left=$((limit - SECONDS))
timeout $((left < 30 ? 30 : left)) "$python" -m unitmargin run \
  cifar10-ugnn --data "$images" --epochs "$epochs" --device "$device" --out "$results/cifar10-ugnn" \
  ${LIMIT:+--limit "$LIMIT"} || echo "training: call again to go on"
