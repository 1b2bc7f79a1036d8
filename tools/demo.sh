#!/usr/bin/env bash
# The demo: an inference-only CNN is made trainable, trained on MNIST, stopped half way, resumed, exported, checked,
# and fine-tuned on Fashion-MNIST with a new head. Everything lands in demo/.
set -euo pipefail
cd "$(dirname "$0")/.."
out=demo onward=build/onward
mkdir -p $out
say() { printf '\n== %s\n' "$*"; }
run() { printf '$ %s\n' "$*"; "$@"; }

say "1. A C++ example writes an inference-only CNN"
run build/examples/make_cnn $out/cnn.onnx

say "2. Make it trainable: loss, gradients and optimizer go into the file (TrainingInfoProto)"
run $onward make-trainable $out/cnn.onnx -o $out/trainable.onnx --loss cross_entropy \
  --optimizer adamw:lr=2e-3 --schedule cosine:warmup=100,total=1874

say "3. Train on MNIST, stop half way"
run $onward train $out/trainable.onnx --data digits -o $out/mnist.onnx --overwrite --steps 937 --eval digits

say "4. Resume from the .onnx file itself; write a report"
run $onward train $out/trainable.onnx --data digits -o $out/mnist.onnx --steps 1874 --resume --eval digits \
  --report $out/mnist-report.html

say "5. Export a plain inference model and evaluate it (asked for: 98.5 %)"
run $onward export $out/mnist.onnx -o $out/mnist-inference.onnx
run $onward eval $out/mnist-inference.onnx --data digits --at-least 0.985

say "6. Fine-tune that model on Fashion-MNIST with a new head (asked for: 88 %)"
run $onward train $out/mnist-inference.onnx --head 10 --optimizer adamw:lr=2e-3 \
  --schedule cosine:warmup=100 --data fashion --eval fashion --epochs 3 -o $out/fashion.onnx --overwrite \
  --report $out/fashion-report.html
run $onward export $out/fashion.onnx -o $out/fashion-inference.onnx
run $onward eval $out/fashion-inference.onnx --data fashion --at-least 0.88

say "Done"
cat <<TEXT
  demo/mnist-inference.onnx, demo/fashion-inference.onnx   plain models for any ONNX runtime
  demo/mnist.onnx, demo/fashion.onnx                       the same with their training: checkpoints to resume from
  demo/mnist-report.html, demo/fashion-report.html         reports, open them in a browser

Next:
  build/onward inspect demo/mnist.onnx
  build/onward train demo/mnist-inference.onnx --data fashion --eval fashion -o demo/more.onnx
  build/onward gradient demo/mnist-inference.onnx --of logits --wrt image -o demo/gradient.onnx
  build/onward --help
TEXT
