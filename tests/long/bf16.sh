#!/usr/bin/env bash
# bf16 against fp32 on the preset nano: tests/long/bf16.sh BUILD. The whole default run, on this machine's headers: two seeds in
# either type, and the first in bf16 again, whose losses must be the same bits. The validation loss at the end, on all data that is
# held out, must agree within 1% in the mean of the seeds: one run alone may differ by as much from another of its own type.
# NSP_TEST_STEPS: fewer steps and a short evaluation, to try the script.
set -uo pipefail
build=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
steps=${NSP_TEST_STEPS:-1500}
batches=auto
[ -z "${NSP_TEST_STEPS:-}" ] || batches=20
seeds=(1 2)
fail() { echo "FAILED: $1"; exit 1; }
two_ranks() { mpirun -np 2 "$build/bin/nsp_app" "$@" --train.threads 1; }
train() {  # NAME SEED TYPE
  local dir=$work/$1 data=auto
  [ -d "$work/data" ] && data=$work/data
  two_ranks --data.path "$data" --run.dir "$dir" --run.log_every 100 --train.steps "$steps" --train.seed "$2" --train.dtype "$3" \
    >"$dir.log" 2>&1 || { tail -n 20 "$dir.log"; fail "$1"; }
  [ -d "$work/data" ] || cp -r "$dir/data" "$work/data"
}
evaluate() {  # NAME
  two_ranks eval --run.dir "$work/$1" --batches "$batches" --json >"$work/$1.eval" 2>"$work/$1.log" || { tail -n 20 "$work/$1.log"; fail "eval of $1"; }
}
number() { sed -n 's/.*"'"$1"'":\([0-9.e+-]*\)[,}].*/\1/p' "$2"; }
loss() { number loss "$work/$1.eval"; }
seconds() { grep -h '"kind":"end"' "$work/$1"*/metrics.jsonl | number seconds - | paste -sd ' '; }
losses() { grep '"kind":"step"' "$work/$1/metrics.jsonl" | grep -o '"loss":[^,]*'; }

for seed in "${seeds[@]}"; do
  for type in fp32 bf16; do
    train "$type-$seed" "$seed" "$type"
    evaluate "$type-$seed"
  done
  echo "seed $seed: validation loss fp32 $(loss "fp32-$seed"), bf16 $(loss "bf16-$seed"), on $(number tokens "$work/bf16-$seed.eval") tokens"
done
for seed in "${seeds[@]}"; do echo "$(loss "fp32-$seed") $(loss "bf16-$seed")"; done | awk '
  NF != 2 { broken = 1 }
  { a += $1; b += $2 }
  END {
    if (broken || !(a > 0) || !(b > 0)) { print "a validation loss is no number"; exit 1 }
    d = b / a - 1
    printf "validation loss of nano, mean of %d seeds: fp32 %.4f, bf16 %.4f (%+.2f%%)\n", NR, a / NR, b / NR, 100 * d
    exit !(d < 0.01 && d > -0.01)
  }' || fail "the means are not within 1%"
echo "seconds of the runs whose losses these are: fp32 $(seconds fp32-), bf16 $(seconds bf16-)"
again=bf16-${seeds[0]}
train again "${seeds[0]}" bf16
[ "$(losses again | wc -l)" -eq "$steps" ] && cmp <(losses "$again") <(losses again) || fail "two runs in bf16 differ"
echo "two runs in bf16: all $steps losses are the same, digit for digit"
