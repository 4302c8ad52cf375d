#!/usr/bin/env bash
# 2 GB of text in bounded memory: tests/long/prepare.sh BUILD
# The text is this machine's headers over and over, half of it in one file, so one document. It and its tokens take 6 GB, in TMPDIR or
# /tmp. The limit is that of PrepareProgram.MemoryDoesNotGrowWithTheText: 64 MiB.
set -euo pipefail
app=$(cd "$1" && pwd)/bin/nsp_app
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ "$(df --output=avail -B1000000 "$work" | tail -1)" -gt 8000 ] || { echo "skipped: $work has less than 8 GB of room"; exit 77; }
[ -n "$(find /usr/include -type f -size +0 -print -quit 2>/dev/null)" ] || { echo "skipped: no headers in /usr/include"; exit 77; }
mkdir "$work/text"
# Bytes of headers, from the beginning as often as it takes.
headers() {
  local end
  set +o pipefail  # head ends the pipe
  while :; do find /usr/include -type f -print0 | sort -z | xargs -0 cat || break; done 2>/dev/null | head -c "$1"
  set -o pipefail
}
headers 1000000000 >"$work/text/large.txt"
for part in 1 2 3 4; do headers 250000000 >"$work/text/part_$part.txt"; done
python3 - "$app" prepare --input "$work/text" --output "$work/tokens" <<'PYTHON'
import resource, subprocess, sys, time
begin = time.time()
code = subprocess.call(sys.argv[1:])
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
print("prepare: %.0f s, largest resident set %.1f MiB of the 64 MiB that it may have" % (time.time() - begin, peak))
sys.exit(code if code else int(peak >= 64))
PYTHON
