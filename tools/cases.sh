#!/usr/bin/env bash
# Writes the official cases of onnx (node, simple, pytorch-converted, pytorch-operator) into $ONWARD_CACHE/onnx-VERSION/cases, once.
# The package carries the node cases as Python code that computes them: numpy's version and seed are fixed, so that every
# machine has the same numbers.
set -euo pipefail
cache=${ONWARD_CACHE:?}
. "$(dirname "$0")/versions.sh"
cases=$cache/onnx-$onnx/cases
[ ! -e "$cases/ready" ] || exit 0

echo "== writing the official cases of onnx $onnx into $cases"
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
"$cache/venv/bin/pip" -q --disable-pip-version-check install --target "$work/python" \
  "onnx==$onnx" numpy==2.4.6 ml_dtypes==0.6.0 protobuf==7.36.2 typing_extensions==4.16.0
PYTHONPATH=$work/python python3 -W ignore "$(dirname "$0")/node_cases.py" "$work/cases"
for kind in simple pytorch-converted pytorch-operator; do
  cp -r "$work/python/onnx/backend/test/data/$kind" "$work/cases/$kind"
done
rm -rf "$cases"
mkdir -p "$(dirname "$cases")"
cp -r "$work/cases" "$cases"
touch "$cases/ready"
