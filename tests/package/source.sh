#!/bin/bash
# SPDX-License-Identifier: MIT
#
# The source release as people get it: made twice with the same bytes, built out of its folder without git, installed, and
# used through pkg-config alone.
set -u
. "$(dirname "$0")/common.bash"

make_twice() {
    "$root/tools/package-source" "$folder/one" && TZ=Asia/Tokyo "$root/tools/package-source" "$folder/two" && cmp "$folder"/one/* "$folder"/two/*
}
build_it() {
    mkdir "$folder/source" "$folder/build" && tar xzf "$folder"/one/* --strip-components=1 -C "$folder/source" && cd "$folder/build" &&
        ../source/configure --prefix="$folder/installed" && make -j"$(nproc)" && make install
}
bill_is_made() {
    SOURCE_DATE_EPOCH=1 "$root/tools/gen-sbom" "$folder/one" && SOURCE_DATE_EPOCH=1 "$root/tools/gen-sbom" "$folder/two" &&
        cmp "$folder"/one/*.json "$folder"/two/*.json &&
        grep -q "$(sha256sum "$folder"/one/*.tar.gz | cut -d' ' -f1)" "$folder"/one/*.json && rm "$folder"/*/*.json
}
program_builds() {
    # shellcheck disable=SC2046 # flags are words
    cc "$root/examples/c/$1.c" -o "$folder/$1" $(PKG_CONFIG_PATH=$folder/installed/lib/pkgconfig pkg-config --cflags --libs libjobqueue)
}
tells_its_version() {
    [ "$(LD_LIBRARY_PATH=$folder/installed/lib "$folder/installed/bin/jobqueue" version | head -n 1)" = \
        "jobqueue $(basename "$folder"/one/*.tar.gz .tar.gz | sed 's/.*-//')" ]
}

check 'the source release is made twice with the same bytes' make_twice
check 'it builds and installs out of its folder' build_it
check 'the bill of materials names it with its digest, twice with the same bytes' bill_is_made
check 'its program tells the version of the file name' tells_its_version
for program in "$root"/examples/c/*.c; do
    check "examples/c/${program##*/} builds against the installed library alone" program_builds "$(basename "$program" .c)"
done
