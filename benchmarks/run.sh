#!/usr/bin/env bash
# benchmarks/run.sh [OUT]: all benchmarks. Results go to OUT (default build/benchmarks/results), a short table to the screen.
#   compare.jsonl             Onward and its peers, ratio best peer / onward (where the peers are: see compare.sh)
#   roofline-MODEL-MODE.txt   each kind of kernel against the machine's peak
#   conv_choice.txt           every convolution kernel by shape, and whether the fixed rules choose the fastest
#   startup.json              start of the program, reading of a large model, compiling
#   scaling.html, .jsonl      cost by batch size and depth
# Settings: ONWARD_BENCH_ROUNDS (3) and ONWARD_BENCH_SECONDS (3) of each measurement, ONWARD_BENCH_ONLY=mlp,lenet for some of
# the models, ONWARD_BENCH_BATCH_MODELS (mlp,lenet) at several batch sizes, ONWARD_BUILD for another build folder, taken as it is.
set -euo pipefail
cd "$(dirname "$0")/.."
export ONWARD_CACHE=${ONWARD_CACHE:-$HOME/.cache/onward}
export ONWARD_MODELS=${ONWARD_MODELS:-$ONWARD_CACHE/models}
rounds=${ONWARD_BENCH_ROUNDS:-3} seconds=${ONWARD_BENCH_SECONDS:-3}
if [ -z "${ONWARD_BUILD:-}" ]; then
  "$ONWARD_CACHE/venv/bin/cmake" -S . -B build -DONWARD_BENCHMARKS=ON > /dev/null
  "$ONWARD_CACHE/venv/bin/cmake" --build build --target benchmark_programs
fi
export ONWARD_BUILD=${ONWARD_BUILD:-build}
out=${1:-$ONWARD_BUILD/benchmarks/results}
mkdir -p "$out"
rm -f "$out"/{compare.jsonl,conv_choice.txt,startup.json,scaling.html,scaling.jsonl} "$out"/roofline-*.txt
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

echo "== Onward and its peers"
benchmarks/compare.sh "$out/compare.jsonl"

echo "== roofline"
models=("$ONWARD_MODELS"/*.onnx)
if [ ! -e "${models[0]}" ]; then
  echo "SKIPPED roofline of the benchmark models: none in $ONWARD_MODELS; showing the example instead" >&2
  "$ONWARD_BUILD/examples/make_cnn" "$work/cnn.onnx" > /dev/null
  models=("$work/cnn.onnx")
elif [ -n "${ONWARD_BENCH_ONLY:-}" ]; then
  mapfile -t models < <(tr , '\n' <<< "$ONWARD_BENCH_ONLY" | sed "s|.*|$ONWARD_MODELS/&.onnx|")
fi
for model in "${models[@]}"; do
  for mode in train infer; do
    "$ONWARD_BUILD/benchmarks/roofline" "$model" $mode 64 "$seconds" | tee "$out/roofline-$(basename "$model" .onnx)-$mode.txt"
  done
done

echo "== choice of convolution kernels"
"$ONWARD_BUILD/benchmarks/conv_choice" > "$out/conv_choice.txt"

echo "== start-up"
python3 benchmarks/startup.py --build "$ONWARD_BUILD" --work "$work" --models "$ONWARD_MODELS" > "$out/startup.json"

echo "== scaling"
python3 benchmarks/scaling.py --build "$ONWARD_BUILD" --work "$work" --html "$out/scaling.html" \
  --rounds "$rounds" --seconds "$seconds" > "$out/scaling.jsonl"

echo
python3 benchmarks/summary.py "$out"
echo "results: $out"
