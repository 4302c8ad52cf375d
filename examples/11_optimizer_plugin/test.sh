#!/usr/bin/env bash
# What the optimizer does, seen from outside: test.sh NSP_APP MODULE_FOLDER
# Two ranks. With k = 1 and alpha = 1/2 every step is halved, so the losses are those of AdamW at half the learning rate, but for
# rounding. With k = 5 the first 5 losses are AdamW's, digit for digit; those after the first cycle are not. A run that was stopped
# within a cycle and resumed must have the losses of the uninterrupted one: the slow weights came back from the checkpoint.
set -euo pipefail
app=$1
modules=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1

"$app" prepare --input "$(dirname "$0")/plugin.cpp" --input "$(dirname "$0")/README.md" --output "$folder/data" >/dev/null
train() {  # RUN STEPS OPTION ...: a model of one small layer
  local run=$1 steps=$2
  shift 2
  mpirun -np 2 "$app" --plugin-path "$modules" "$@" --data.path "$folder/data" --run.dir "$folder/$run" \
    --train.steps "$steps" --model.layers 1 --model.hidden 32 --model.heads 2 --model.context 32 --train.global_batch 4 --train.warmup 0 \
    --train.schedule constant --train.threads 1 --train.eval_every 0 --train.eval_batches 1 >"$folder/$run.txt" 2>&1 || {
    cat "$folder/$run.txt"
    exit 1
  }
}
losses() { sed -n '/"kind":"step"/s/.*"loss":\([^,]*\).*/\1/p' "$folder/$1/metrics.jsonl"; }

train half 8 --train.lr 5e-3
train halved 8 --train.lr 1e-2 --plugins lookahead --lookahead.k 1 --lookahead.alpha 0.5
paste <(losses half) <(losses halved) | awk '{ d = $1 - $2; if (d < 0) d = -d; if (d > 1e-5 * $1) bad = 1 } END { exit bad || NR != 8 }' || {
  paste <(losses half) <(losses halved)
  echo "k = 1 and alpha = 1/2 is not AdamW at half the learning rate"
  exit 1
}

train adamw 12 --train.lr 1e-2
train whole 12 --train.lr 1e-2 --plugins lookahead --lookahead.k 5
paste <(losses adamw) <(losses whole) >"$folder/both.txt"
[ "$(wc -l <"$folder/both.txt")" -eq 12 ] || { echo "12 losses of each were expected"; exit 1; }
# Loss i + 1 is the first that sees update i. Update 5 ends the cycle, so loss 6 is the first to differ.
differ=$(awk '$1 != $2 { print NR }' "$folder/both.txt" | xargs)
[ "$differ" = "6 7 8 9 10 11 12" ] || { echo "losses differ from AdamW's at steps $differ instead of 6 to 12"; exit 1; }

train parts 8 --train.lr 1e-2 --plugins lookahead --lookahead.k 5
train parts 12 --train.lr 1e-2 --plugins lookahead --lookahead.k 5
grep -q 'resumed from step 8' "$folder/parts.txt" || { cat "$folder/parts.txt"; exit 1; }
[ "$(losses whole)" = "$(losses parts)" ] || { echo "the resumed run has other losses than the uninterrupted one"; exit 1; }
echo "lookahead: half of AdamW's steps with k = 1 and alpha = 1/2; AdamW for 5 losses with k = 5, and its own way after them; resumed bit for bit"
