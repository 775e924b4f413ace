# SPDX-License-Identifier: MIT
# A table beside the queue.
# shellcheck shell=bash
sqlite3 "${JOBQUEUE_DSN#sqlite:}" 'CREATE TABLE customers (id, active); INSERT INTO customers VALUES (7, TRUE)'
# SAMPLE
