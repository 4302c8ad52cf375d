#!/usr/bin/env bash
# After `cmake --install`, from any folder: the program finds its modules beside itself, lists them and trains.
# install_test.sh BUILD_DIR
set -euo pipefail
build=$1
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
unset NSP_PLUGIN_PATH
cmake --install "$build" --prefix "$prefix/p" >/dev/null
mv "$prefix/p" "$prefix/moved"          # an installation may be moved
cd "$prefix"
app=$prefix/moved/bin/nsp_app
"$app" plugins | tee plugins.txt | grep -q "$prefix/moved/.*/libnsp_sync_desloc.so"
! grep -q "$build" plugins.txt
mpirun -np 8 "$app" --plugins desloc,autosp --train.steps 2 --train.eval_batches 1 | tee run.txt
grep -q 'step .*2/2' run.txt
mpirun -np 4 "$app" --plugins desloc,autosp --autosp.degree 2 --train.steps 2 --train.eval_batches 1 --run.dir two >/dev/null
mpirun -np 4 "$app" --plugins desloc,autosp --autosp.degree 4 --train.steps 2 --train.eval_batches 1 --run.dir four >/dev/null
