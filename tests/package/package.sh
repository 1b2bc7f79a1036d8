#!/usr/bin/env bash
# package.sh CASE: one check of the installed package, in $WORK. `install` comes first and leaves a moved prefix behind; in the
# other cases the machine knows nothing of the folder with third-party builds. Exit code 77: skipped, and why.
# The caller sets CMAKE, BUILD, SOURCE, CACHE, WORK, LIBDIR and CXX.
set -euo pipefail
prefix=$WORK/moved lib=$WORK/moved/$LIBDIR
model=$SOURCE/examples/mnist/trainable.onnx
mkdir -p "$WORK/empty"
hidden=(env -i PATH=/usr/bin:/bin HOME="$WORK/empty" ONWARD_CACHE="$WORK/empty" GOMP_SPINCOUNT=10000)

fail() { echo "FAILED: $*" >&2; exit 1; }
skip() { echo "SKIPPED: $*" >&2; exit 77; }

# Three losses, each below the one before, then what the trained model says.
check_consumer() {  # PROGRAM
  local out
  out=$("${hidden[@]}" "$1" "$model" "$WORK/trained.onnx")
  echo "$out"
  awk '/^loss / { if (n++ && $2 >= last) exit 1; last = $2 } /^logits 20$/ { served = 1 } END { exit !(n == 3 && served) }' \
    <<< "$out" || fail "three falling losses and 20 logits were expected"
  "${hidden[@]}" "$prefix/bin/onward" check "$WORK/trained.onnx"
}

fresh() { rm -rf "${WORK:?}/$1"; mkdir -p "$WORK/$1"; }

# A CPU of 2008: SSE4.2, no AVX. Whatever it does, it ends with the message and not with a signal.
without_avx2() {  # PROGRAM ARGUMENT...
  local code=0
  GOMP_SPINCOUNT=10000 qemu-x86_64 -cpu Nehalem "$@" > "$WORK/qemu.out" 2>&1 || code=$?
  grep -q 'this CPU has no AVX2 and FMA' "$WORK/qemu.out" && [ $code = 2 ] ||
    { cat "$WORK/qemu.out"; fail "$*: exit code $code, expected 2 and the message"; }
}

case $1 in
  install)
    fresh prefix; rm -rf "$prefix"
    "$CMAKE" --install "$BUILD" --prefix "$WORK/prefix" > "$WORK/install.log" || { cat "$WORK/install.log"; exit 1; }
    mv "$WORK/prefix" "$prefix" ;;

  program)  # starts with nothing in the environment, also through a link from elsewhere
    env -i "$prefix/bin/onward" --version
    ln -sf "$prefix/bin/onward" "$WORK/onward"
    env -i "$WORK/onward" check "$model" ;;

  paths)  # nothing in the package names a folder of the machine it was built on
    found=$(grep -rlF -e "$CACHE" -e "$SOURCE" -e "$BUILD" -e "$WORK/prefix" \
      "$lib/cmake" "$lib/pkgconfig" "$prefix/include" || true)
    [ -z "$found" ] || fail "names folders of this machine: $found"
    for file in "$prefix/bin/onward" "$lib/libonward.so"; do
      readelf -d "$file" | awk '/R(UN)?PATH/ && /\[[^$]/ { print; bad = 1 } END { exit bad }' || fail "$file: absolute path"
    done
    [ -z "$(find "$prefix/include" -mindepth 1 -maxdepth 1 ! -name onward)" ] || fail "headers outside include/onward"
    others=$(grep -rhoE '#include ["<][^">]*/[^">]*' "$prefix/include" | grep -v '[<"]onward/' || true)
    [ -z "$others" ] || fail "public headers include private ones: $others" ;;

  exports)  # only the interface is visible
    others=$(nm -D --defined-only -C "$lib/libonward.so" | cut -d' ' -f3- | grep -v 'onward::api' || true)
    [ -z "$others" ] || fail "visible beside the interface: $(head -5 <<< "$others")" ;;

  kernels)  # no inline function that was compiled for AVX2 can serve the rest of the program
    others=$(nm -C --defined-only "$BUILD/libonward_ops_kernels.a" | grep ' W ' || true)
    [ -z "$others" ] || fail "shared with the rest: $(head -5 <<< "$others")" ;;

  find_package)
    fresh consumer
    "${hidden[@]}" "$CMAKE" -S "$SOURCE/tests/package/consumer" -B "$WORK/consumer" -G Ninja -DCMAKE_CXX_COMPILER="$CXX" \
      -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release
    "${hidden[@]}" "$CMAKE" --build "$WORK/consumer"
    check_consumer "$WORK/consumer/consumer" ;;

  pkg_config)
    which pkg-config > /dev/null || skip "pkg-config is not installed (apt-get install pkgconf)"
    fresh pkg_config
    flags=$("${hidden[@]}" PKG_CONFIG_PATH="$lib/pkgconfig" pkg-config --cflags --libs onward)
    read -ra flags <<< "$flags"
    "${hidden[@]}" "$CXX" "$SOURCE/tests/package/consumer/main.cc" -o "$WORK/pkg_config/consumer" "${flags[@]}" \
      -Wl,-rpath,"$lib"
    check_consumer "$WORK/pkg_config/consumer"
    # README's program, as it stands there.
    sed -n '/^```cpp$/,/^```$/p' "$SOURCE/README.md" | grep -v '^```' > "$WORK/pkg_config/readme.cc"
    "${hidden[@]}" "$CXX" "$WORK/pkg_config/readme.cc" -o "$WORK/pkg_config/readme" "${flags[@]}" -Wl,-rpath,"$lib"
    cd "$WORK/pkg_config"
    cp "$model" trainable.onnx
    "${hidden[@]}" ./readme
    "${hidden[@]}" "$prefix/bin/onward" check trained.onnx ;;

  document)  # the programs of docs/cpp.md, as they stand there, one after the other
    fresh document
    cd "$WORK/document"
    awk '/^```cpp$/ { inside = 1; ++n; next } /^```$/ { inside = 0 } inside { print > n ".cc" }' "$SOURCE/docs/cpp.md"
    for n in 1 2 3; do
      "${hidden[@]}" "$CXX" -std=c++17 -Wall -Wextra -Werror -I"$prefix/include" $n.cc -o $n -L"$lib" -lonward -Wl,-rpath,"$lib"
    done
    "${hidden[@]}" ./1 "$SOURCE/tests/package/line.onnx" | tee out; grep -q 'loss below 0.001' out || fail "it did not learn"
    "${hidden[@]}" ./2 line-served.onnx | tee out; grep -qE '^y (20.9|21)' out || fail "10 should give about 21"
    "${hidden[@]}" ./3 line-served.onnx | tee out; grep -qE '^dy/dx (1.9|2)' out || fail "the slope should be about 2" ;;

  plugins)  # built with the installed headers and nothing else, they serve the installed program and a user's
    fresh plugins
    cd "$WORK/plugins"
    for name in squared_relu softclip; do
      "${hidden[@]}" "$CXX" -std=c++17 -Wall -Wextra -Werror -I"$prefix/include" -shared -fPIC -Wl,--no-undefined \
        "$SOURCE/examples/${name}_plugin.cc" -o "lib$name.so"
      ! nm -D --undefined-only -C "lib$name.so" | grep -F 'onward' || fail "lib$name.so needs symbols of Onward"
    done
    both=(--plugin libsquared_relu.so --plugin libsoftclip.so)
    classifier=$SOURCE/tests/plugins/classifier.onnx
    "${hidden[@]}" "$prefix/bin/onward" bench "$classifier" --mode train --seconds 0 "${both[@]}"
    "${hidden[@]}" "$prefix/bin/onward" make-trainable "$classifier" --loss cross_entropy -o trainable.onnx "${both[@]}"
    "${hidden[@]}" "$CXX" -std=c++17 -I"$prefix/include" "$SOURCE/tests/package/plugins/main.cc" -o user -L"$lib" -lonward \
      -Wl,-rpath,"$lib"
    "${hidden[@]}" ./user trainable.onnx ./libsquared_relu.so ./libsoftclip.so ;;

  subproject)  # needs the third-party builds, but neither GoogleTest nor what only the program uses
    fresh subproject
    "$CMAKE" -S "$SOURCE/tests/package/subproject" -B "$WORK/subproject" -G Ninja -DCMAKE_CXX_COMPILER="$CXX" \
      -DONWARD_SOURCE="$SOURCE" -DONWARD_CACHE="$CACHE" -DCMAKE_DISABLE_FIND_PACKAGE_GTest=ON
    # A room of it, with the host's flags: all of them would take as long as the whole build.
    "$CMAKE" --build "$WORK/subproject" -j 2 --target onward_tensor ;;

  no_cache)  # a clear word where the third-party builds are not there
    fresh no_cache
    ! "${hidden[@]}" "$CMAKE" -S "$SOURCE" -B "$WORK/no_cache" -G Ninja -DCMAKE_CXX_COMPILER="$CXX" -DONWARD_TESTS=OFF > "$WORK/no_cache.log" 2>&1 ||
      fail "configured without third-party builds"
    grep -q 'tools/setup.sh' "$WORK/no_cache.log" || { cat "$WORK/no_cache.log"; fail "the message does not name tools/setup.sh"; } ;;

  old_cpu)  # an error instead of an illegal instruction
    which qemu-x86_64 > /dev/null || skip "qemu-x86_64 is not installed (apt-get install qemu-user): CPUs without AVX2 are not tried"
    without_avx2 "$prefix/bin/onward" check "$model"
    without_avx2 "$prefix/bin/onward" inspect "$model"
    without_avx2 "$prefix/bin/onward" --help
    without_avx2 "$WORK/consumer/consumer" "$model" "$WORK/never.onnx" ;;

  demo)  # what `./build.sh demo` builds before its first step has no test in it
    [ -f "$BUILD/build.ninja" ] || skip "only Ninja tells what a target is made of"
    read -ra targets <<< "$(sed -n 's/^ *demo) *build \([^;]*\);.*/\1/p' "$SOURCE/build.sh")"
    [ ${#targets[@]} -gt 0 ] || fail "build.sh does not say what demo builds"
    commands=$(ninja -C "$BUILD" -t commands "${targets[@]}")
    grep -q 'core/ops/conv/conv.cc' <<< "$commands" || fail "the kernels are not among the commands of ${targets[*]}"
    ! grep -m1 -F -e "$SOURCE/tests/" -e libgtest <<< "$commands" || fail "${targets[*]} need tests" ;;

  *) echo "no case '$1'" >&2; exit 2 ;;
esac
