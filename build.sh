#!/usr/bin/env bash
# Onward's front door: installs what is missing, builds, tests, shows.
#   ./build.sh build            build/onward and the library, nothing else
#   ./build.sh test             builds and runs every test
#   ./build.sh sanitize [NAME...]  builds and runs tests (tests/NAME; all of them) under address and undefined-behaviour sanitizers
#   ./build.sh sanitize-cuda [address|thread]  the emulated CUDA device and its tests under sanitizers (docs/cuda.md)
#   ./build.sh demo             trains, resumes, exports and fine-tunes a model on real images
#   ./build.sh bench [OUT]      builds and runs benchmarks/run.sh
#   ./build.sh install PREFIX   builds, and installs program, library, headers and package files
# ONWARD_CACHE names the folder for third-party builds and data (default ~/.cache/onward).
set -euo pipefail
cd "$(dirname "$0")"
export ONWARD_CACHE=${ONWARD_CACHE:-$HOME/.cache/onward}
cmake=$ONWARD_CACHE/venv/bin/cmake
command=${1:-help}
[ $# -gt 0 ] && shift

configure() {  # SOURCE FOLDER OPTION...
  local source=$1 folder=$2; shift 2
  tools/setup.sh
  echo "== building ($folder/)"
  [ -f "$folder/build.ninja" ] || "$cmake" -S "$source" -B "$folder" -G Ninja -DONWARD_CACHE="$ONWARD_CACHE" "$@" \
    > build.log 2>&1 || { cat build.log; exit 1; }
  rm -f build.log
}

build() {  # TARGET...
  configure . build -DCMAKE_BUILD_TYPE=RelWithDebInfo
  "$cmake" --build build --target "$@"
}

# Folders of sanitized builds are beside build/: paths from there are the same, and so is what the compiler cache has.
sanitize() {  # NAME...
  local targets=("${@/%/_test}") wanted=()
  [ $# -gt 0 ] && wanted=(-R "^($(IFS='|'; echo "$*"))_[0-9]+$") || targets=(all)
  configure . build-sanitize -DCMAKE_BUILD_TYPE=RelWithDebInfo -DONWARD_CUDA=OFF -DONWARD_SANITIZE=ON
  "$cmake" --build build-sanitize --target "${targets[@]}"
  tools/cases.sh
  echo "== testing under sanitizers"
  export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:quarantine_size_mb=16 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
  tools/test.sh build-sanitize "${wanted[@]}"
}

sanitize_cuda() {  # KIND
  local kind=$1 run=()
  configure . "build-cuda-$kind" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DONWARD_CUDA=ON -DONWARD_CUDA_SANITIZE="$kind"
  "$cmake" --build "build-cuda-$kind" --target cuda_emu_test cuda_test
  echo "== testing the emulated device under the $kind sanitizer"
  export ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 TSAN_OPTIONS=halt_on_error=1 OMP_NUM_THREADS=1
  # Left out: barriers that are taken away on purpose, so that kernels go astray, and grids of a million threads.
  local filter='-Barriers.*:HugeTest.*'
  if [ "$kind" = thread ]; then
    run=(setarch -R)  # GCC's cannot do with addresses that are drawn at random
    # What runs every kernel on small grids (Accesses checks that it does); the rest would take hours.
    filter='ThreadSanitizerTest.*:*KernelsTest.*:Accesses.*:*Shuffled*/Perceptron'
  fi
  export GTEST_FILTER=${GTEST_FILTER:-$filter}
  for test in cuda_emu cuda; do "${run[@]}" "build-cuda-$kind/tests/$test/${test}_test" --gtest_brief=1; done
}

case $command in
  build)   build onward onward_library; echo "== ready: build/onward --help" ;;
  test)    build all; tools/cases.sh; echo "== testing"; tools/test.sh build "$@" ;;
  sanitize) sanitize "$@" ;;
  sanitize-cuda) sanitize_cuda "${1:-address}" ;;
  demo)    build onward make_cnn; tools/data.sh; exec tools/demo.sh "$@" ;;
  bench)   build onward make_cnn; exec benchmarks/run.sh "$@" ;;
  install) build onward onward_library; exec "$cmake" --install build --prefix "${1:?where to: ./build.sh install PREFIX}" ;;
  *)       sed -n '2,11s/^# \{0,1\}//p' "$0"; [ "$command" = help ] || exit 2 ;;
esac
