#!/usr/bin/env bash
# test.sh FOLDER ARGUMENT...: runs the tests of a build folder (arguments go to ctest), then tells what was skipped and why.
set -uo pipefail
folder=$1; shift
"${ONWARD_CACHE:?}/venv/bin/ctest" --test-dir "$folder" --output-on-failure -j 2 "$@"
code=$?
# gtest writes "FILE:LINE: Skipped" and the reason in the next line, package.sh "SKIPPED: " before it.
awk '/: Skipped$/ { reason = 1; next } reason { ++skipped[$0]; reason = 0 } sub(/^SKIPPED: /, "") { ++skipped[$0] }
     END { for (why in skipped) printf "skipped %d: %s\n", skipped[why], why }' "$folder/Testing/Temporary/LastTest.log" | sort
exit $code
