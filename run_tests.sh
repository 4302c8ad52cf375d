#!/usr/bin/env bash
# Builds nsp with its tests and runs them. ./run_tests.sh [PRESET ...]; presets: release (default), debug, asan.
# Under asan the tests with the label slow are left out. The last line is "N passed, N failed".
set -uo pipefail
cd "$(dirname "$0")"
./setup.sh || exit 1
passed=0
failed=0
for preset in "${@:-release}"; do
  cmake --preset "$preset" -DNSP_BUILD_TESTS=ON >/dev/null || { echo "configuring $preset failed"; exit 1; }
  cmake --build --preset "$preset" || { echo "building $preset failed"; exit 1; }
  leave_out=()
  [ "$preset" = asan ] && leave_out=(-LE slow)
  log="build/$preset/tests.log"
  ctest --test-dir "build/$preset" -j 2 --output-on-failure "${leave_out[@]}" 2>&1 | tee "$log"
  total=$(sed -n 's/.*tests passed, [0-9]* tests\{0,1\} failed out of \([0-9]*\)$/\1/p' "$log" | tail -n 1)
  bad=$(sed -n 's/.*tests passed, \([0-9]*\) tests\{0,1\} failed out of [0-9]*$/\1/p' "$log" | tail -n 1)
  if [ -z "$total" ] || [ "$total" -eq 0 ]; then
    echo "no test was run for $preset (see $log)"
    bad=1
    total=1
  fi
  passed=$((passed + total - bad))
  failed=$((failed + bad))
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
