# SPDX-License-Identifier: MIT
# What every part of ./dev uses: messages, steps with a log, nearest names. Progress goes to stderr, so that
# the output of a program started by ./dev stays its own.
# shellcheck shell=bash

say() { echo "$*"; }
note() { echo "dev: $*" >&2; }
die() {
    echo "dev: $*" >&2
    exit 1
}
die_usage() {
    echo "dev: $*" >&2
    exit 2
}

# one_of WHAT LIST WORD...: each word is one of the list, or the call was a mistake
one_of() {
    local what=$1 allowed=$2 word
    shift 2
    for word; do
        [[ " $allowed " == *" $word "* ]] || die_usage "unknown $what \"$word\" (allowed: $allowed)"
    done
}

# need_clone: what git tracks is what a release is made of
need_clone() {
    local said
    [ -e "$ROOT/.git" ] ||
        die "$ROOT is no git clone, and a release is made of what git tracks: run this in a clone of the repository (a source release is built by ./configure && make)"
    said=$(git -C "$ROOT" log -1 --format=%ct 2>&1) || die "git cannot read $ROOT: $said"
}

# step TEXT LOG COMMAND...: says what is done, keeps its output in the log, shows the end of it on failure
step() {
    local text=$1 log=$2
    shift 2
    note "$text"
    mkdir -p "$(dirname "$log")"
    "$@" >"$log" 2>&1 </dev/null && return
    tail -n 40 "$log" >&2
    die "failed: $text (all of it: $log)"
}

# plain_name FOLDER: the folder, or a link to it when its path has a blank or another character that configure, phpize
# or LD_LIBRARY_PATH cannot take. The link's name stands in build/, since what is built refers to it; when the link
# is gone or the folder has moved, everything is built anew.
plain_name() {
    local link noted=$1/build/.link
    [[ $1 == *[[:space:]\"\#\$\&\'\`\\:\;]* ]] || { echo "$1"; return; }
    link=$(cat "$noted" 2>/dev/null || true)
    if [ -z "$link" ] || [ "$(readlink "$link")" != "$1" ]; then
        rm -rf "$1/build"
        mkdir -p "$1/build"
        link=$(mktemp -d)/jobqueue
        ln -s "$1" "$link"
        echo "$link" >"$noted"
    fi
    echo "$link"
}

# nearest WORD CANDIDATE...: the candidate with the smallest edit distance
nearest() {
    local word=$1
    shift
    printf '%s\n' "$@" | awk -v a="$word" '
        function min(x, y) { return x < y ? x : y }
        function distance(a, b,    i, j, d) {
            for (i = 0; i <= length(a); i++) d[i, 0] = i
            for (j = 0; j <= length(b); j++) d[0, j] = j
            for (i = 1; i <= length(a); i++)
                for (j = 1; j <= length(b); j++)
                    d[i, j] = min(min(d[i-1, j], d[i, j-1]) + 1,
                                  d[i-1, j-1] + (substr(a, i, 1) != substr(b, j, 1)))
            return d[length(a), length(b)]
        }
        { n = distance(a, $0); if (NR == 1 || n < best) { best = n; word = $0 } }
        END { print word }'
}
