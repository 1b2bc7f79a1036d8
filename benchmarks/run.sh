#!/usr/bin/env bash
# benchmarks/run.sh [MODEL.onnx...]: milliseconds per training step and inference of each model.
# Without arguments, where the peers' scripts are beside the project (../shared/peers) and installed, it measures Onward
# and the peers in turn in one run and prints the ratio best peer / onward; otherwise it measures demo/cnn.onnx.
set -euo pipefail
cd "$(dirname "$0")/.."
peers=../shared/peers models=${ONWARD_MODELS:-$ONWARD_CACHE/models}
if [ $# -eq 0 ] && [ -x "${PEERS:-$HOME/.cache/onward-peers}/torch/bin/python" ] && [ -e $peers/compare.py ]; then
  home=${PEERS:-$HOME/.cache/onward-peers}
  [ -e "$models/mlp.onnx" ] || (. "$home/env.sh"; "$home/torch/bin/python" $peers/export.py "$models")
  for mode in train infer; do
    python3 $peers/compare.py --models "$models" --onward build/onward --mode $mode
  done
  exit
fi
[ $# -gt 0 ] || { mkdir -p demo; [ -e demo/cnn.onnx ] || build/examples/make_cnn demo/cnn.onnx; set -- demo/cnn.onnx; }
for model in "$@"; do
  for mode in train infer; do
    build/onward bench "$model" --mode $mode --loss cross_entropy --optimizer adamw --batch 64 --profile
  done
done
