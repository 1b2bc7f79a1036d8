#!/bin/sh
# isolate_archive.sh ARCHIVE LINKER NM OBJCOPY AR: joins the archive's objects into one, in which weak functions (copies of
# inline ones) are local. Data of inline functions and templates stays one with the rest of the program's.
set -eu
archive=$1 linker=$2 nm=$3 objcopy=$4 ar=$5
joined=${archive%.a}.o
"$linker" -r --force-group-allocation --whole-archive "$archive" -o "$joined"
"$nm" --defined-only "$joined" > "$joined.symbols"
awk '$2 == "W" { print $3 }' "$joined.symbols" > "$joined.functions"
awk '$2 == "u" { print $3 }' "$joined.symbols" > "$joined.data"
"$objcopy" --localize-symbols="$joined.functions" --weaken-symbols="$joined.data" "$joined"
rm "$archive"
"$ar" qcs "$archive" "$joined"
rm "$joined" "$joined.symbols" "$joined.functions" "$joined.data"
