#!/usr/bin/env bash
# benchmarks/compare.sh OUT.jsonl: Onward and its peers in turn over all models, and over batch sizes 1, 8 and 64.
# Needs the peers' scripts (../shared/peers) and what their setup.sh installs; says so and does nothing where they are absent.
# Models go to $ONWARD_MODELS (default $ONWARD_CACHE/models), outside the tree. See run.sh for the settings.
set -euo pipefail
out=$(realpath "${1:?usage: compare.sh OUT.jsonl}")
cd "$(dirname "$0")/.."
peers=../shared/peers home=${PEERS:-$HOME/.cache/onward-peers}
models=${ONWARD_MODELS:-${ONWARD_CACHE:-$HOME/.cache/onward}/models}
onward=${ONWARD_BUILD:-build}/onward
names=${ONWARD_BENCH_BATCH_MODELS:-mlp,lenet} batches=1,8,64
measure=(--onward "$onward" --rounds "${ONWARD_BENCH_ROUNDS:-3}" --seconds "${ONWARD_BENCH_SECONDS:-3}")

skip() { echo "SKIPPED comparison with peers: $*" >&2; exit 0; }
[ -e $peers/compare.py ] || skip "no $peers/compare.py"
for environment in torch ort ortt; do
  [ -x "$home/$environment/bin/python" ] || skip "no $home/$environment (see $peers/setup.sh)"
done

export_once() {  # FOLDER COMMAND...: the command fills the folder, once
  [ -e "$1/exported" ] && return
  mkdir -p "$1"
  (. "$home/env.sh"; "${@:2}" "$1") && touch "$1/exported"
}
export_once "$models" "$home/torch/bin/python" $peers/export.py
variants="$models/batches-$names"
export_once "$variants" "$home/torch/bin/python" benchmarks/peer_batches.py $peers "$names" "$batches" export.py

: > "$out"
for mode in train infer; do
  python3 $peers/compare.py --models "$models" "${measure[@]}" --mode $mode --only "${ONWARD_BENCH_ONLY:-}" | tee -a "$out"
  python3 benchmarks/compare_batches.py --peers $peers --models "$variants" "${measure[@]}" --mode $mode \
    --names "$names" --batches "$batches" | tee -a "$out"
done
