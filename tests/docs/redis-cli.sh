# SPDX-License-Identifier: MIT
# A Redis that redis-cli finds by itself, with a job in it.
# shellcheck shell=bash
redis-cli() { command redis-cli -u "$address" "$@"; }
address=$JOBQUEUE_DSN
jobqueue push mail.send --queue=mail
# SAMPLE
jobqueue clear mail --force
