# SPDX-License-Identifier: MIT
# unit.sh FILE: fails with what systemd finds wrong in that unit. Its programs need not be there.
command -v systemd-analyze >/dev/null || { echo "systemd-analyze is not here"; exit 1; }
said=$(systemd-analyze verify "$1" 2>&1 | grep "${1##*/}:[0-9]*: ") || exit 0
echo "$said"
exit 1
