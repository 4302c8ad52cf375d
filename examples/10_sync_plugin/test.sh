#!/usr/bin/env bash
# What the policy does, seen from outside: test.sh NSP_APP MODULE_FOLDER
# Two ranks; the log must name an average at exactly the steps that are due, and bytes there and nowhere else; a run that was
# stopped and resumed between two averages must have the losses of the uninterrupted one, digit for digit.
set -euo pipefail
app=$1
modules=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1

"$app" prepare --input "$(dirname "$0")/plugin.cpp" --input "$(dirname "$0")/README.md" --output "$folder/data" >/dev/null
train() {  # RUN STEPS: a model of one small layer
  mpirun -np 2 "$app" --plugin-path "$modules" --plugins doubling --doubling.period 8 --data.path "$folder/data" --run.dir "$folder/$1" \
    --train.steps "$2" --model.layers 1 --model.hidden 32 --model.heads 2 --model.context 32 --train.global_batch 4 --train.warmup 0 \
    --train.schedule constant --train.threads 1 --train.eval_every 0 --train.eval_batches 1 >"$folder/$1.txt" 2>&1 || {
    cat "$folder/$1.txt"
    exit 1
  }
}
steps() { grep '"kind":"step"' "$folder/$1/metrics.jsonl"; }
value() { sed -n "s/.*\"$1\":\"\{0,1\}\([^,\"}]*\).*/\1/p"; }

train whole 26
# Line `step` is t = step - 1. With period 8: t = 1 2 4 8 16 24.
want="2 3 5 9 17 25"
named=$(steps whole | grep '"synced":"x"' | value step | xargs)
sent=$(steps whole | grep -v '"sync_bytes":0,' | value step | xargs)
[ "$named" = "$want" ] || { echo "averages at steps $named instead of $want"; exit 1; }
[ "$sent" = "$want" ] || { echo "bytes sent at steps $sent instead of $want"; exit 1; }

train parts 12
train parts 26
grep -q 'resumed from step 12' "$folder/parts.txt" || { cat "$folder/parts.txt"; exit 1; }
if [ "$(steps whole | value loss)" != "$(steps parts | value loss)" ]; then
  echo "the resumed run has other losses than the uninterrupted one"
  exit 1
fi
echo "doubling: averages at steps $named; resumed bit for bit"
