#!/usr/bin/env bash
# Onward's front door: installs what is missing, builds, tests, shows.
#   ./build.sh build            the library and build/onward
#   ./build.sh test             builds and runs every test
#   ./build.sh demo             trains, resumes, exports and fine-tunes a model on real images
#   ./build.sh bench [OUT]      builds and runs benchmarks/run.sh
# ONWARD_CACHE names the folder for third-party builds and data (default ~/.cache/onward).
set -euo pipefail
cd "$(dirname "$0")"
export ONWARD_CACHE=${ONWARD_CACHE:-$HOME/.cache/onward}
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1  # clones in other folders share compiled objects
command=${1:-help}
[ $# -gt 0 ] && shift

build() {
  tools/setup.sh
  local cmake=$ONWARD_CACHE/venv/bin/cmake
  echo "== building (build/)"
  [ -f build/build.ninja ] || "$cmake" -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
    -DONWARD_CACHE="$ONWARD_CACHE" > build.log 2>&1 || { cat build.log; exit 1; }
  rm -f build.log
  "$cmake" --build build
}

case $command in
  build) build; echo "== ready: build/onward --help" ;;
  test)  build; echo "== testing"; "$ONWARD_CACHE/venv/bin/ctest" --test-dir build --output-on-failure -j 2 "$@" ;;
  demo)  build; tools/data.sh; exec tools/demo.sh "$@" ;;
  bench) build; exec benchmarks/run.sh "$@" ;;
  *)     sed -n '2,8s/^# \{0,1\}//p' "$0"; [ "$command" = help ] || exit 2 ;;
esac
