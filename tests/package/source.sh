#!/bin/bash
# SPDX-License-Identifier: MIT
#
# The source release as people get it: made twice with the same bytes, built without git out of its folder, in folders with
# blanks in their names, installed, used through pkg-config alone, and able to make itself again.
set -u
. "$(dirname "$0")/common.bash"

make_twice() {
    local there
    there=$(made source) && cp -R "$there" "$folder/one" && TZ=Asia/Tokyo "$root/tools/package-source" "$folder/two" && cmp "$folder"/one/* "$folder"/two/*
}
build_it() {
    mkdir "$folder/the source" "$folder/a build" && tar xzf "$folder"/one/* --strip-components=1 -C "$folder/the source" && cd "$folder/a build" &&
        "$folder/the source/configure" --prefix="$folder/installed" CFLAGS=-O0 && make -j"$(nproc)" && make install
}
installs_beside() {
    cd "$folder/a build" && make install DESTDIR="$folder/some place" && LD_LIBRARY_PATH="$folder/some place$folder/installed/lib" \
        "$folder/some place$folder/installed/bin/jobqueue" version && make uninstall DESTDIR="$folder/some place" &&
        find "$folder/some place" ! -type d && [ -z "$(find "$folder/some place" ! -type d)" ]
}
# The suites run elsewhere; here two tests that read nothing but the release.
makes_itself() {
    local tests='tests/unit/payload/vectors tests/unit/core/conf'
    cd "$folder/a build" && make -j"$(nproc)" distcheck DISTCHECK_CONFIGURE_FLAGS=CFLAGS=-O0 TESTS="$tests" check_PROGRAMS="$tests"
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
check 'with DESTDIR too, and what is uninstalled is gone' installs_beside
check 'make distcheck passes' makes_itself
check 'the bill of materials names it with its digest, twice with the same bytes' bill_is_made
check 'its program tells the version of the file name' tells_its_version
for program in "$root"/examples/c/*.c; do
    check "examples/c/${program##*/} builds against the installed library alone" program_builds "$(basename "$program" .c)"
done
