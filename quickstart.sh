#!/usr/bin/env bash
# From a fresh Debian 12 machine to a trained model: installs what is needed, builds, trains the preset nano with two ranks and
# the plug-ins desloc and autosp on this machine's own C and C++ headers, and prints a sample. Options are passed on to nsp_app,
# e.g. ./quickstart.sh --train.steps 300 --run.dir runs/short. The same command again goes on where it stopped.
set -euo pipefail
cd "$(dirname "$0")"
./setup.sh
if [ ! -f build/release/CMakeCache.txt ]; then
  cmake --preset release -DNSP_BUILD_TESTS=OFF   # ./run_tests.sh turns them on
else
  cmake --preset release
fi
cmake --build --preset release
# Open MPI wants to be told that running as root, and more ranks than cores, is meant.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
exec mpirun -np 2 build/release/bin/nsp_app --plugins desloc,autosp --run.log_every 25 "$@"
