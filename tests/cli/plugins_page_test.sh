#!/usr/bin/env bash
# docs/plugins.md, followed by a stranger: every ```sh block of the page is run as it stands, in a copy of the folders it names, and
# what it promises is looked for. Then what the page says about the package: other versions, another place, another compiler.
# plugins_page_test.sh BUILD_DIR SOURCE_DIR
set -euo pipefail
build=$1
source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset NSP_PLUGIN_PATH
fail() {
  echo "plugins_page_test: $*"
  exit 1
}

mkdir -p "$work/nsp-sources/build" "$work/home"
ln -s "$build" "$work/nsp-sources/build/release"
cp -r "$source/docs" "$source/examples" "$work/nsp-sources"
export HOME=$work/home
awk '/^```sh$/ { on = 1; next } /^```$/ { on = 0 } on' "$source/docs/plugins.md" >"$work/page.sh"
[ "$(wc -l <"$work/page.sh")" -ge 15 ] || fail "the page has no commands"
(cd "$work/nsp-sources" && bash -euo pipefail -x "$work/page.sh") >"$work/said.txt" 2>&1 || {
  cat "$work/said.txt"
  fail "a command of the page failed"
}

says() { grep -q -- "$1" "$work/said.txt" || { cat "$work/said.txt"; fail "no line with '$1'"; }; }
says "$HOME/doubling/lib/nsp/libnsp_sync_doubling.so"
says "$HOME/lookahead/lib/nsp/libnsp_optimizer_lookahead.so"
says '--lookahead.alpha'
says 'resumed from step 10'
grep -q 'lookahead.slow' "$HOME/run/plan.txt" || fail "plan.txt does not count lookahead.slow"
# t = 1 2 4 8 12 with period 4; a line's step is t + 1.
named=$(sed -n '/"synced":"x"/s/.*"step":\([0-9]*\).*/\1/p' "$HOME/run/metrics.jsonl" | xargs)
[ "$named" = "2 3 5 9 13" ] || fail "averages at steps $named"
[ -f "$HOME/nsp/lib/nsp/libnsp_sync_doubling.so" ] || find "$HOME/nsp" -name libnsp_sync_doubling.so | grep -q . || fail "not installed beside nsp"

# The package, moved, for this version alone.
mv "$HOME/nsp" "$work/moved"
cat >"$work/CMakeLists.txt" <<'PROJECT'
cmake_minimum_required(VERSION 3.25)
project(asks LANGUAGES CXX)
find_package(nsp ${WANTED} REQUIRED)
nsp_add_plugin(${KIND} doubling SOURCES ${PLUGIN})
PROJECT
configure() {  # WANTED KIND OPTION ...
  local wanted=$1 kind=$2
  shift 2
  rm -rf "$work/asks"
  cmake -S "$work" -B "$work/asks" -DCMAKE_PREFIX_PATH="$work/moved" -DWANTED="$wanted" -DKIND="$kind" \
    -DPLUGIN="$source/examples/10_sync_plugin/plugin.cpp" "$@" >"$work/asks.txt" 2>&1
}
configure 0.1 sync || { cat "$work/asks.txt"; fail "the moved package is not found"; }
! grep -rq "$HOME/nsp" "$work/moved/lib"*/cmake || fail "the package knows the place where it was installed first"
! configure 0.2 sync || fail "0.2 is satisfied by another minor version"
! configure 1.0 sync || fail "1.0 is satisfied by another major version"
! configure 0.1 sink || fail "a kind that does not exist is accepted"
grep -q "'sink' is not a kind" "$work/asks.txt" || { cat "$work/asks.txt"; fail "the refusal of a kind has another text"; }
if command -v clang++ >/dev/null && ! grep -q 'CMAKE_CXX_COMPILER:.*clang' "$build/CMakeCache.txt"; then
  ! configure 0.1 sync -DCMAKE_CXX_COMPILER=clang++ || fail "another compiler is accepted"
  grep -q 'was built with' "$work/asks.txt" || { cat "$work/asks.txt"; fail "the refusal of a compiler has another text"; }
fi
echo "plugins_page_test: the page holds"
