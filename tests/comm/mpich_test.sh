#!/usr/bin/env bash
# Another MPI is one module rebuilt: builds comm/mpi alone with MPICH, against an installed copy of the given build, and uses it with
# everything else as it is. mpich_test.sh BUILD_DIR SOURCE_DIR. MPICC and MPIRUN name another MPICH than Debian's. Ends with 77 where
# there is none. The last line is "N passed, N failed".
set -uo pipefail
build=$1
source=$2
mpicc=${MPICC:-mpicc.mpich}
mpirun=${MPIRUN:-mpirun.mpich}
command -v "$mpicc" >/dev/null && command -v "$mpirun" >/dev/null || { echo "skipped: there is no $mpicc and $mpirun; ./setup.sh --with mpich installs them"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset NSP_PLUGIN_PATH
export OMP_NUM_THREADS=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
passed=0
failed=0

# check NAME WANTED_CODE TEXT COMMAND ...: the command ends with this code and says the text.
check() {
  local name=$1 wanted=$2 text=$3 code
  shift 3
  timeout -k 5 300 "$@" >"$work/said.txt" 2>&1 </dev/null
  code=$?
  if [ "$code" = "$wanted" ] && grep -q -e "$text" "$work/said.txt"; then
    echo "mpich $name: passed"
    passed=$((passed + 1))
  else
    echo "mpich $name: FAILED, code $code instead of $wanted, or no line with '$text'"
    tail -n 40 "$work/said.txt"
    failed=$((failed + 1))
  fi
}

build_module() {
  cmake --install "$build" --prefix "$work/nsp" >/dev/null &&
    cmake -S "$source/comm/mpi" -B "$work/mpich" -DMPI_C_COMPILER="$mpicc" -DCMAKE_PREFIX_PATH="$work/nsp" && cmake --build "$work/mpich"
}
export -f build_module
export build source work mpicc
check "module built alone" 0 'libnsp_comm_mpi.so' bash -c build_module
modules=$(dirname "$(find "$work/mpich" -name libnsp_comm_mpi.so 2>/dev/null | head -n 1)")
[ "$failed" -eq 0 ] || { echo "0 passed, 1 failed"; exit 1; }
app=$work/nsp/bin/nsp_app

check "flavour in the stamp" 0 'mpi=mpich' "$app" plugins --plugin-path "$modules"
for ranks in 2 3 4; do
  check "collectives on $ranks ranks" 0 'PASSED' env NSP_PLUGIN_PATH="$modules" "$mpirun" -np "$ranks" "$build/tests/comm_mpi_test"
done

# The same program as ever, with this module before its own. Codes as design: 0 done, 75 stopped with a good checkpoint, 2 usage.
tiny=$source/tests/golden/llmc_tiny
data=$tiny/dev/data/tinyshakespeare
train() {  # LAUNCHER MODULE_FOLDER STEPS OPTION ...
  local launcher=$1 folder=$2 steps=$3
  shift 3
  "$launcher" -np 2 "$app" --plugin-path "$folder" --model.init "$tiny/gpt2_124M.bin" --data.path "$data/tiny_shakespeare_train.bin" \
    --data.val_path "$data/tiny_shakespeare_val.bin" --data.shuffle false --train.global_batch 4 --train.threads 1 --train.eval_batches 1 \
    --train.schedule constant --train.warmup 0 --run.dir "$work/run" --train.steps "$steps" "$@"
}
stop_after_a_while() {  # once the job is under way: a STOP file of before it would be removed
  until grep -q '"step":20,' "$work/run/metrics.jsonl"; do sleep 0.2; done
  touch "$work/run/STOP"
}
export -f train stop_after_a_while
export app tiny data
check "training" 0 'step .*4/4' bash -c "train $mpirun $modules 4 --plugins desloc --desloc.kx 2 --desloc.ku 2 --desloc.kv 2"
check "stopped with 75" 75 'stopping after' bash -c "stop_after_a_while & train $mpirun $modules 100000"
steps=$(($(sed -n 's/.*"kind":"step","step":\([0-9]*\).*/\1/p' "$work/run/metrics.jsonl" | tail -n 1) + 2))
check "resume" 0 'resumed from step' bash -c "train $mpirun $modules $steps"
check "usage error" 2 'model.layres' bash -c "train $mpirun $modules 8 --model.layres 3"

# The wrong launcher: N processes that each think they are the whole job.
if mpirun --version 2>/dev/null | grep -q 'Open MPI'; then
  check "module of MPICH under Open MPI's mpirun" 1 'each would train alone' bash -c "train mpirun $modules 8"
  check "module of Open MPI under MPICH's mpirun" 1 'each would train alone' bash -c "train $mpirun $work/none 8"
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
