#!/usr/bin/env bash
# examples/slurm/train.sbatch on a Slurm of one node: cut by its time limit, queued again, finished. tests/long/slurm.sh BUILD
# Takes some minutes, since Slurm counts time limits in minutes. Ends with 77 where Slurm or root is missing.
set -uo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "$1" && pwd)
if [ "$(id -u)" -ne 0 ] || ! command -v slurmctld munged sbatch >/dev/null; then
  echo "skipped: this needs root and the packages slurm-wlm and munge (./setup.sh --with slurm)"
  exit 77
fi
work=$(mktemp -d)
steps=${NSP_TEST_STEPS:-600}
"$root/tests/lab/slurm.sh" start "$work/slurm" || { echo "FAILED: Slurm does not start"; exit 1; }
trap '"$root/tests/lab/slurm.sh" stop "$work/slurm"; rm -rf "$work"' EXIT
export SLURM_CONF=$work/slurm/slurm.conf APP=$build/bin/nsp_app
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1

cd "$work" && mkdir text && cp /usr/include/*.h text/ && "$APP" prepare --input text --output data >/dev/null || exit 1
# The step limit is set so that one minute is not enough; the signal comes 20 s before it.
timeout 1500 sbatch -W --ntasks=2 --time=1 --signal=B:USR1@20 --output="$work/job.out" "$root/examples/slurm/train.sbatch" \
  --plugins desloc --data.path "$work/data" --run.dir "$work/run" --train.steps "$steps" --train.threads 1 --run.log_every 100 >"$work/sbatch.out" 2>&1
code=$?
again=$(grep -c 'queueing the job again' "$work/job.out")
finished=$(grep -c '"kind":"step"' "$work/run/metrics.jsonl")
last=$(grep '"kind":"end"' "$work/run/metrics.jsonl" | tail -n 1)
echo "sbatch -W ended with $code; queued again $again times; $finished of $steps steps in metrics.jsonl, each once: $(
  grep -o '"kind":"step","step":[0-9]*' "$work/run/metrics.jsonl" | sort -u | wc -l)"
if [ "$code" -ne 0 ] || [ "$again" -lt 1 ] || [ "$finished" -ne "$steps" ] || [[ $last != *'"outcome":"finished"'* ]]; then
  tail -n 30 "$work/job.out" "$work/sbatch.out" "$work"/slurm/log/slurmctld.log
  echo "FAILED"
  exit 1
fi
