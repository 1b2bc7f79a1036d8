#!/usr/bin/env bash
# Installs what the build needs: Debian packages, and from PyPI CMake, oneDNN and onnx (built once as a static library).
# Everything that is not a Debian package goes to $ONWARD_CACHE, keyed by version, so a second clone finds it ready.
set -euo pipefail
cache=${ONWARD_CACHE:?}
. "$(dirname "$0")/versions.sh"
packages=(g++ ninja-build ccache git python3 python3-venv libprotobuf-dev protobuf-compiler libabsl-dev libeigen3-dev
          libgtest-dev libgmock-dev libbenchmark-dev pkgconf zlib1g-dev libpng-dev libjpeg-dev
          libwebp-dev libtiff-dev libopenjp2-7-dev libre2-dev libboost-context-dev)

missing=()
for p in "${packages[@]}"; do
  dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing+=("$p")
done
if [ ${#missing[@]} -gt 0 ]; then
  echo "== installing Debian packages: ${missing[*]}"
  sudo=; [ "$(id -u)" = 0 ] || sudo=sudo
  $sudo apt-get update -qq
  DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends "${missing[@]}" > /dev/null
fi

mkdir -p "$cache"
if [ ! -e "$cache/venv/ready-$cmake-$onednn" ]; then
  echo "== installing CMake $cmake and oneDNN (PyPI onednn-devel-cpu-gomp $onednn) into $cache/venv"
  python3 -m venv "$cache/venv"
  "$cache/venv/bin/pip" -q --disable-pip-version-check install "cmake==$cmake" "onednn-devel-cpu-gomp==$onednn" "onednn-cpu-gomp==$onednn"
  touch "$cache/venv/ready-$cmake-$onednn"
fi

if [ ! -e "$cache/onnx-$onnx/ready" ]; then
  echo "== building onnx $onnx as a static library (once, about 4 minutes)"
  work=$cache/onnx-$onnx/work
  rm -rf "$work"; mkdir -p "$work"
  "$cache/venv/bin/pip" -q --disable-pip-version-check download --no-deps --no-binary onnx \
    -d "$work" "onnx==$onnx" > "$work/log" 2>&1 || { cat "$work/log"; exit 1; }
  tar -xzf "$work/onnx-$onnx.tar.gz" -C "$work"
  "$cache/venv/bin/cmake" -S "$work/onnx-$onnx" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DONNX_USE_PROTOBUF_SHARED_LIBS=ON -DONNX_ML=ON -DONNX_BUILD_PYTHON=OFF \
    -DBUILD_SHARED_LIBS=OFF -DCMAKE_INSTALL_PREFIX="$cache/onnx-$onnx" -DCMAKE_INSTALL_LIBDIR=lib >> "$work/log" 2>&1 \
    && "$cache/venv/bin/cmake" --build "$work/build" --target install >> "$work/log" 2>&1 || { tail -40 "$work/log"; exit 1; }
  rm -rf "$work/build" "$work/onnx-$onnx"
  touch "$cache/onnx-$onnx/ready"
fi
