# SPDX-License-Identifier: MIT
# What the scripts of this folder share: $root is the tree, $folder a folder that goes when the script ends.
# shellcheck shell=bash disable=SC2034 # read by who sources this
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# made KIND: the folder with what tools/package-KIND makes (source, php, python); the scripts of a run of the suite share it
made() (
    there=${JOBQUEUE_TEST_PACKAGES:-$folder/made}/$1
    mkdir -p "$there"
    exec 9>"$there.lock"
    flock 9
    [ -e "$there.made" ] || { "$root/tools/package-$1" "$there" >&2 9>&- && touch "$there.made"; } && echo "$there"
)

# check NAME COMMAND...: one TAP line, with what it said when it fails
check() {
    local name=$1
    shift
    if "$@" >"$folder/said" 2>&1; then echo "ok - $name"; else
        echo "not ok - $name"
        tail -n 30 "$folder/said" | sed 's/^/# /'
    fi
}
