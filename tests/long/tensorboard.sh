#!/usr/bin/env bash
# TensorBoard's own reader on the event files of a run that was killed and went on: tests/long/tensorboard.sh BUILD
# Ends with 77 (skipped) where the Python package tensorboard is not installed; NSP_TEST_TENSORBOARD_PYTHON names a Python that has it.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
python=${NSP_TEST_TENSORBOARD_PYTHON:-python3}
"$python" -c 'import tensorboard' 2>/dev/null || { echo "skipped: $python has no package tensorboard"; exit 77; }
run=$(mktemp -d)
trap 'rm -rf "$run"' EXIT
train() {
  NSP_TRAIN_THREADS=1 exec "$1/bin/nsp_app" --data.path "$here/../golden/llmc_tiny/dev/data/tinyshakespeare/tiny_shakespeare_train.bin" \
    --run.dir "$run" --train.steps 2000 --train.eval_every 30 --train.checkpoint_every 100 \
    --model.layers 1 --model.hidden 32 --model.heads 2 --model.ffn 64 --model.vocab 512 --model.context 64 --train.global_batch 4
}
(train "$1") >"$run.log" 2>&1 &
first=$!
until grep -q '"step":150,' "$run/metrics.jsonl" 2>/dev/null; do
  kill -0 "$first" 2>/dev/null || { cat "$run.log"; exit 1; }
  sleep 0.1
done
kill -KILL "$first" || true
wait "$first" 2>/dev/null || true
(train "$1") >"$run.log" 2>&1 || { cat "$run.log"; exit 1; }
grep -m 1 'resumed from step' "$run.log"
rm -f "$run.log"
ls "$run/tensorboard"
"$python" "$here/read_tensorboard.py" "$run"
