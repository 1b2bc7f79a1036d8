#!/usr/bin/env bash
# tools/gpu_check.sh [MODEL.onnx...]: what to run first on a machine with an NVIDIA GPU; prints a report to send in.
set -uo pipefail
cd "$(dirname "$0")/.."
onward=build/onward
cmake=${ONWARD_CACHE:-$HOME/.cache/onward}/venv/bin/cmake
failed=0

check() {  # WHAT COMMAND...
  local what=$1; shift
  echo "== $what"
  "$@" || { echo "-- failed ($?): $*"; failed=$((failed + 1)); }
}

report() {
  echo "Onward $(git describe --always --dirty 2>/dev/null), $(uname -sr)"
  nvidia-smi --query-gpu=name,driver_version,memory.total,compute_cap --format=csv,noheader || echo "nvidia-smi cannot be run"
  nvcc --version | tail -2
}

check "building" ./build.sh build
check "building the tests" "$cmake" --build build --target make_cnn cuda_test ops_test training_info_test
check "the machine" report
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
build/examples/make_cnn "$work/cnn.onnx" > /dev/null
for model in "$work/cnn.onnx" "$@"; do
  check "$model: where it runs" "$onward" bench "$model" --mode train --loss cross_entropy --device cuda --plan --seconds 1
  check "$model: training on the CPU" "$onward" bench "$model" --mode train --loss cross_entropy --seconds 3
  check "$model: training on the GPU" "$onward" bench "$model" --mode train --loss cross_entropy --device cuda --seconds 3
done
# Without what only the emulator can do: orders, failures, checks of accesses.
check "kernels and training on the GPU" env ONWARD_CUDA_DEVICE=cuda build/tests/cuda/cuda_test --gtest_brief=1 \
  --gtest_filter='-Schedules.*:Barriers.*:Accesses.*:*FailingCall*:CudaGraphs.*:*Shuffled*:*TwoGpus*:HugeTest.*:*WhatTheMachineLacks:*IsOneLaunch*:*IsARaceWithoutWaiting'
for tests in ops training_info; do
  check "the tables of tests/$tests on the GPU" env ONWARD_TEST_DEVICE=cuda "build/tests/${tests}_test" --gtest_brief=1 \
    --gtest_filter='-*KernelTest*:*Coverage*:*IsTheSameOnADevice*'
done
echo
[ "$failed" -eq 0 ] && echo "all passed" || echo "$failed failed; please send this report in"
[ "$failed" -eq 0 ]
