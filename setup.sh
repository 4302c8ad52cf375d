#!/usr/bin/env bash
# Installs what nsp needs on Debian 12 (or a close relative) and builds a Kokkos with OpenMP into
# build/deps/kokkos, which the CMake presets look into. Safe to run again: what is there is kept.
#
# Debian's Kokkos package is Serial only, while its *source* package (trilinos) builds one with OpenMP in
# half a minute. The source entry is derived from this machine's own package sources and kept in a private
# list, so the system's configuration stays as it is. If that route fails, the Serial package is installed
# instead and nsp is built with it: slower kernels, the same results.
#
# ./setup.sh [--with NAME]...: what only some tests need: fuzz (clang with libFuzzer), mpich (a second MPI), slurm (a Slurm of one node),
# tsan (Debian's Kokkos, which has no OpenMP).
#
# Needs root for apt-get; without root it prints what to ask an administrator for, and goes on.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
deps="$here/build/deps"
log="$deps/setup.log"
mkdir -p "$deps"
: >"$log"

packages=(g++ make cmake ninja-build pkg-config git
  openmpi-bin libopenmpi-dev libhdf5-dev hdf5-tools libboost-program-options-dev
  libdnnl-dev libopenblas-dev libgtest-dev python3-h5py python3-numpy
  iproute2)

while [ $# -gt 0 ]; do
  case "$1 ${2:-}" in
    "--with fuzz") packages+=(clang libclang-rt-dev) ;;
    "--with mpich") packages+=(mpich libmpich-dev) ;;
    "--with tsan") packages+=(libtrilinos-kokkos-dev) ;;
    "--with slurm") packages+=(slurm-wlm munge) ;;
    *) echo "usage: ./setup.sh [--with fuzz|mpich|slurm|tsan]..." >&2; exit 2 ;;
  esac
  shift 2
done

say() { printf 'setup: %s\n' "$*"; }

missing=()
for p in "${packages[@]}"; do
  dpkg-query -W -f='${db:Status-Abbrev}' "$p" 2>/dev/null | grep -q '^ii' || missing+=("$p")
done
if [ ${#missing[@]} -gt 0 ]; then
  if [ "$(id -u)" -ne 0 ]; then
    say "these packages are missing and need root: apt-get install ${missing[*]}"
    exit 1
  fi
  say "installing ${#missing[@]} packages: ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update >>"$log" 2>&1 || say "apt-get update failed; trying with the lists that are there (see $log)"
  apt-get install -y --no-install-recommends "${missing[@]}" >>"$log" 2>&1 || {
    tail -n 20 "$log" >&2
    say "apt-get install failed; the whole log is $log"
    exit 1
  }
fi

# --- Kokkos ---------------------------------------------------------------------------------------------

# Writes deb-src entries for every deb entry of this machine to the file $1.
derive_source_entries() {
  : >"$1"
  local f
  for f in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
    [ -f "$f" ] && sed -n 's/^[[:space:]]*deb[[:space:]]/deb-src /p' "$f" >>"$1"
  done
  return 0
}
# The same for deb822 files; $1 is a folder for the copies.
derive_source_stanzas() {
  local f
  for f in /etc/apt/sources.list.d/*.sources; do
    [ -f "$f" ] && sed 's/^Types:.*/Types: deb-src/' "$f" >"$1/$(basename "$f")"
  done
  return 0
}

build_kokkos() {
  local work="$deps/kokkos-build"
  rm -rf "$work"
  mkdir -p "$work/parts" "$work/lists/partial" "$work/src"
  derive_source_entries "$work/sources.list"
  derive_source_stanzas "$work/parts"
  local apt=(-o "Dir::Etc::sourcelist=$work/sources.list" -o "Dir::Etc::sourceparts=$work/parts"
    -o "Dir::State::lists=$work/lists" -o "APT::Sandbox::User=root")
  apt-get "${apt[@]}" update || return 1
  (cd "$work/src" && apt-get "${apt[@]}" source --download-only trilinos) || return 1
  local tarball
  tarball=$(find "$work/src" -name 'trilinos_*.orig.tar.*' ! -name '*.asc' | head -n 1)
  [ -n "$tarball" ] || return 1
  tar -C "$work/src" --strip-components=1 --wildcards -xf "$tarball" '*/packages/kokkos/*' || return 1
  # Static, PIC and hidden: two backend modules in one process must not share a Kokkos symbol.
  cmake -G Ninja -S "$work/src/packages/kokkos" -B "$work/build" -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_INSTALL_PREFIX="$deps/kokkos" -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DBUILD_SHARED_LIBS=OFF \
    -DCMAKE_CXX_STANDARD=20 -DKokkos_CXX_STANDARD=20 \
    -DCMAKE_CXX_FLAGS="-fvisibility=hidden -fvisibility-inlines-hidden -fno-gnu-unique" \
    -DKokkos_ENABLE_OPENMP=ON -DKokkos_ENABLE_SERIAL=ON || return 1
  cmake --build "$work/build" || return 1
  cmake --install "$work/build" || return 1
  rm -rf "$work"
}

if compgen -G "$deps/kokkos/lib*/cmake/Kokkos/KokkosConfig.cmake" >/dev/null; then
  say "Kokkos with OpenMP is there: $deps/kokkos"
elif [ -n "${Kokkos_ROOT:-}" ] || [ -n "${Kokkos_DIR:-}" ]; then
  say "using the Kokkos that Kokkos_ROOT or Kokkos_DIR names"
else
  say "building Kokkos with OpenMP from Debian's source package (166 MB to fetch, half a minute to build)"
  if build_kokkos >>"$log" 2>&1; then
    say "Kokkos with OpenMP is in $deps/kokkos"
  else
    say "that failed (see $log); installing Debian's Serial Kokkos instead: nsp will use one thread per rank in its own kernels"
    rm -rf "$deps/kokkos" "$deps/kokkos-build"
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends libtrilinos-kokkos-dev >>"$log" 2>&1 || {
      tail -n 20 "$log" >&2
      say "no Kokkos could be installed; set Kokkos_ROOT to one of your own (3.4 to 5.x)"
      exit 1
    }
  fi
fi
say "done. Next: cmake --preset release && cmake --build --preset release"
