# SPDX-License-Identifier: MIT
# A database with a table of jobs, which psql finds by itself, and an empty queue.
# shellcheck shell=bash
psql() { command psql "$JOBQUEUE_DSN" "$@"; }
psql -q -c "CREATE DATABASE docs_$$"
export JOBQUEUE_DSN=${JOBQUEUE_DSN%/*}/docs_$$
psql -q -c "CREATE TABLE jobs (type text, payload json, run_at timestamp)"
psql -q -c "INSERT INTO jobs VALUES ('mail.send', '{\"to\": 7}', '2026-11-30 10:00')"
# SAMPLE
jobqueue stats imported --json | grep -q '"ready":1'
