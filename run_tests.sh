#!/usr/bin/env bash
# Installs what is missing, builds nsp with its tests and runs them: ./run_tests.sh [STAGE ...]
#   release (default), debug   all tests
#   asan                       AddressSanitizer and UndefinedBehaviorSanitizer; tests with the label slow are left out
#   tsan                       ThreadSanitizer, without OpenMP: tests with the labels unit, mpi or threads, but not slow
#   mpich                      the release build with its MPI module rebuilt for MPICH
#   fuzz                       each reader of files is fuzzed for NSP_FUZZ_SECONDS (20)
# Minutes are printed for each stage. The last line is "N passed, N failed".
set -uo pipefail
cd "$(dirname "$0")"
passed=0
failed=0
times=()

count() { passed=$((passed + $1)); failed=$((failed + $2)); }

# CPU modules for several instruction sets, so that they are tested side by side, where the Kokkos is one that allows it.
# The release build only: each costs a hundred seconds of one core.
several_cpu_modules() {
  if [ "$(uname -m)" = x86_64 ] && compgen -G 'build/deps/kokkos/lib*/cmake/Kokkos/KokkosConfig.cmake' >/dev/null; then
    echo '-DNSP_CPU_ARCHS=x86-64-v3;x86-64-v4;native'
  fi
}

preset() {
  local more=()
  [ "$1" = release ] && mapfile -t more < <(several_cpu_modules)
  cmake --preset "$1" -DNSP_BUILD_TESTS=ON "${more[@]}" >/dev/null || { echo "configuring $1 failed"; count 0 1; return; }
  cmake --build --preset "$1" || { echo "building $1 failed"; count 0 1; return; }
  local leave_out=() log="build/$1/tests.log" total bad
  [ "$1" = asan ] && leave_out=(-LE slow)
  [ "$1" = tsan ] && leave_out=(-L '^(unit|mpi|threads)$' -LE slow)
  ctest --test-dir "build/$1" -j 2 --output-on-failure "${leave_out[@]}" 2>&1 | tee "$log"
  total=$(sed -n 's/.*tests passed, [0-9]* tests\{0,1\} failed out of \([0-9]*\)$/\1/p' "$log" | tail -n 1)
  bad=$(sed -n 's/.*tests passed, \([0-9]*\) tests\{0,1\} failed out of [0-9]*$/\1/p' "$log" | tail -n 1)
  if [ -z "$total" ] || [ "$total" -eq 0 ]; then
    echo "no test was run for $1 (see $log)"
    count 0 1
    return
  fi
  count $((total - bad)) "$bad"
}

# A script with tests of its own, whose last line is "N passed, N failed".
script() {  # LOG COMMAND ...
  local log=$1
  "${@:2}" 2>&1 | tee "$log"
  local line
  line=$(tail -n 1 "$log")
  if [[ $line =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then count "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}"; else count 0 1; fi
}

fuzz() { script build/fuzz.log tests/fuzz/run.sh "${NSP_FUZZ_SECONDS:-20}"; }
mpich() {
  { cmake --preset release -DNSP_BUILD_TESTS=ON >/dev/null && cmake --build --preset release; } || { echo "building release failed"; count 0 1; return; }
  script build/mpich.log tests/comm/mpich_test.sh "$PWD/build/release" "$PWD"
}

stage() {  # NAME COMMAND ...
  local begin=$SECONDS code
  "${@:2}"
  code=$?
  times+=("$(printf '%s %d:%02d' "$1" $(((SECONDS - begin) / 60)) $(((SECONDS - begin) % 60)))")
  return "$code"
}

stages=("${@:-release}")
extras=()
for name in "${stages[@]}"; do
  case $name in
    release | debug | asan) ;;
    fuzz | mpich | tsan) extras+=(--with "$name") ;;
    *) echo "run_tests.sh: there is no stage $name; there are release, debug, asan, tsan, mpich and fuzz" >&2; exit 2 ;;
  esac
done
stage setup ./setup.sh "${extras[@]}" || exit 1
for name in "${stages[@]}"; do
  case $name in
    fuzz | mpich) stage "$name" "$name" ;;
    *) stage "$name" preset "$name" ;;
  esac
done
printf 'minutes: '
printf '%s  ' "${times[@]}"
echo
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
