#!/usr/bin/env bash
# Builds the fuzzers with clang (AddressSanitizer and UndefinedBehaviorSanitizer) and runs each for SECONDS, two at a time:
# tests/fuzz/run.sh [SECONDS]. What crashes a reader is kept in build/fuzz/crashes. The last line is "N passed, N failed".
set -uo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-20}
fuzzers=(ini token_file jsonl llmc_model manifest elf_note)
cmake --preset fuzz >/dev/null && cmake --build --preset fuzz --target fuzzers || { echo "building the fuzzers failed"; exit 1; }
build=$PWD/build/fuzz
rm -rf "$build/seeds" "$build/logs" "$build/crashes"
mkdir -p "$build/logs" "$build/crashes" "$build/seeds/elf_note"
"$build/fuzz/fuzz_seeds" "$build/seeds" || exit 1
cp "$build"/fuzz/libfuzz_seed_module.so "$build/seeds/elf_note/module"

# What a reader takes is bounded by its file: 512 MiB is far above that for these inputs.
fuzz() {
  mkdir -p "$build/corpus/$1"
  ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1 "$build/fuzz/fuzz_$1" \
    -max_total_time="$seconds" -timeout=10 -rss_limit_mb=512 -max_len=65536 -artifact_prefix="$build/crashes/$1-" \
    "$build/corpus/$1" "$build/seeds/$1" >"$build/logs/$1" 2>&1
}
passed=0
failed=0
report() {  # NAME PID
  if wait "$2"; then
    passed=$((passed + 1))
    echo "fuzz $1: $(grep -o 'Done [0-9]* runs.*' "$build/logs/$1"), $(grep -o 'cov: [0-9]*' "$build/logs/$1" | tail -n 1)"
  else
    failed=$((failed + 1))
    echo "fuzz $1: FAILED"
    tail -n 40 "$build/logs/$1"
  fi
}
for ((i = 0; i < ${#fuzzers[@]}; i += 2)); do
  fuzz "${fuzzers[i]}" & first=$!
  fuzz "${fuzzers[i + 1]}" & second=$!
  report "${fuzzers[i]}" "$first"
  report "${fuzzers[i + 1]}" "$second"
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
