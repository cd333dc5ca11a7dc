#!/usr/bin/env bash
# Everything a CUDA machine should answer in 14 minutes: ten minutes of the best recipe from data to
# report, then times of steps and passes. Call it again to go on where it was stopped.
#
#   benchmarks/gpu.sh IMAGES RESULTS      IMAGES: CIFAR-10 by class, folder or archive
#
# Environment, for a trial on a CPU:
#   DEVICE=cpu BATCH=8 ROUNDS=1 MINUTES=0.05 LIMIT=256 SECONDS_EACH=60 RECIPE=cifar10-minute
set -uo pipefail
images=$(realpath "$1") results=$2
device=${DEVICE:-cuda} batch=${BATCH:-1024} rounds=${ROUNDS:-10} recipe=${RECIPE:-cifar10-best}
minutes=${MINUTES:-10} seconds=${SECONDS_EACH:-20}
python=${PYTHON:-python3}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$results"

# As many steps as ten minutes hold; history.csv has a line an epoch, with its seconds.
"$python" -m unitmargin run "$recipe" --data "$images" --minutes "$minutes" --device "$device" \
  --out "$results/$recipe" ${LIMIT:+--limit "$LIMIT"} || echo "training: call again to go on"

for precision in float32 tf32 bfloat16; do
  for mode in eager compile; do
    table=$results/step_time_${precision}_$mode.json
    [ -s "$table" ] && continue
    flag=$([ "$mode" = compile ] && echo --compile)
    # shellcheck disable=SC2086
    timeout "$seconds" "$python" "$here/step_time.py" --device "$device" --batch "$batch" \
      --rounds "$rounds" --precision "$precision" $flag --json "$table" \
      --only mixing mixing_free on_manifold unconstrained twin || echo "$table: not finished"
  done
done

"$python" "$here/latency.py" --device "$device" --rounds "$rounds" \
  --json "$results/latency.json" || echo "latency: not finished"
