#!/usr/bin/env bash
# bf16 against fp32 on the preset nano: tests/long/bf16.sh BUILD. The whole default run, on this machine's headers, three times:
# fp32, bf16, and bf16 again, whose losses must be the same bits. The validation losses at the end must agree within 1%.
set -uo pipefail
build=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
train() {  # NAME OPTIONS ...
  local dir=$work/$1 data=auto
  [ -d "$work/data" ] && data=$work/data
  mpirun -np 2 "$build/bin/nsp_app" --data.path "$data" --run.dir "$dir" --run.log_every 100 --train.threads 1 "${@:2}" >"$dir.log" 2>&1 || {
    tail -n 20 "$dir.log"
    echo "FAILED: $1"
    exit 1
  }
  [ -d "$work/data" ] || cp -r "$dir/data" "$work/data"
}
losses() { grep '"kind":"step"' "$work/$1/metrics.jsonl" | grep -o '"loss":[^,]*'; }
last_eval() { grep '"kind":"eval"' "$work/$1/metrics.jsonl" | tail -n 1 | sed 's/.*"val_loss":\([^,}]*\).*/\1/'; }
seconds() { grep '"kind":"end"' "$work/$1/metrics.jsonl" | sed 's/.*"seconds":\([^,}]*\).*/\1/'; }

train fp32
train bf16 --train.dtype bf16
train again --train.dtype bf16
a=$(last_eval fp32) b=$(last_eval bf16)
echo "validation loss of nano: fp32 $a, bf16 $b ($(awk "BEGIN{printf \"%+.2f\", 100*($b/$a-1)}")%); seconds $(seconds fp32), $(seconds bf16)"
awk "BEGIN{d=$b/$a-1; exit !(d<0.01 && d>-0.01)}" || { echo "FAILED: more than 1% apart"; exit 1; }
[ -n "$(losses bf16)" ] && cmp <(losses bf16) <(losses again) || { echo "FAILED: two runs in bf16 differ"; exit 1; }
echo "two runs in bf16: all $(losses bf16 | wc -l) losses are the same, digit for digit"
