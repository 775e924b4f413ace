#!/bin/bash
# SPDX-License-Identifier: MIT
#
# ./dev called by mistake: it says what is allowed or missing, with 2 for a wrong word, before anything is installed, built or removed.
set -u
. "$(dirname "$0")/common.bash"

copy=$folder/released
mkdir -p "$copy/tools" "$copy/dist" && cp "$root/dev" "$copy/" && cp -R "$root/tools/dev" "$root/tools/package-source" "$copy/tools/" &&
    touch "$copy/dist/kept"

# says STATUS PATTERN ARGUMENT...: of ./dev in a folder that is no git clone
says() {
    local wanted=$1 pattern=$2 status=0 said
    shift 2
    said=$("$copy/dev" "$@" 2>&1 </dev/null) || status=$?
    printf '%s\n' "$said"
    [ "$status" = "$wanted" ] && grep -q -- "$pattern" <<<"$said" && ! grep -q fatal: <<<"$said" && [ -e "$copy/dist/kept" ]
}
makes_no_release() {
    local status=0 said
    said=$("$copy/tools/package-source" "$copy/dist" 2>&1) || status=$?
    printf '%s\n' "$said"
    [ $status = 1 ] && grep -q 'is no git clone' <<<"$said" && ! grep -q fatal: <<<"$said"
}

check './dev package outside a clone says so, and dist/ stays' says 1 'is no git clone, .* run this in a clone' package
check './dev matrix too' says 1 'is no git clone' matrix zts
check 'tools/package-source too' makes_no_release
check './dev matrix nope names the parts' says 2 'unknown part of the matrix "nope" (allowed: bookworm trixie zts blanks)' matrix nope
check './dev test nope names the suites' says 2 'unknown suite "nope" (allowed: tools docs unit .* list)' test nope
check './dev up nope names the servers' says 2 'unknown server "nope" (allowed: redis postgres mariadb)' up nope
check './dev down nope too' says 2 'unknown server "nope" (allowed: redis postgres mariadb)' down nope
