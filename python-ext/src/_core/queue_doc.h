/* SPDX-License-Identifier: MIT
 *
 * Signatures and docstrings of Queue's methods, for help() and the reference.
 */
#ifndef JOBQUEUE_PYTHON_QUEUE_DOC_H
#define JOBQUEUE_PYTHON_QUEUE_DOC_H

#define FILTER "queue=None, name=None, reason=None, older_than=None"
#define BY_IDS_OR_FILTER                                                                           \
    "ids is an id or an iterable of them; without ids a filter, or all=True, says which: queue,\n" \
    "name, reason (doc/behaviour.md F2), older_than (seconds since death). dry_run only counts.\n" \
    "ValueError: neither or both, or ids is empty. NotFound: some of the ids are not dead jobs,\n" \
    "or cannot be had (its ids says which); the others are done."

#define DOC_QUEUE                                                                                \
    "Queue(dsn=None, **options)\n--\n\n"                                                         \
    "A connection to a store of jobs, opened on first use. Without a DSN: $JOBQUEUE_DSN, else\n" \
    "sqlite:jobqueue.db. Options are those of the connection in doc/configuration.md."

#define DOC_PUSH                                                                                   \
    "push($self, /, name, payload=None, *, queue=None, delay=None, at=None, priority=None,\n"      \
    "     id=None, version=None, unique=None, tries=None, timeout=None, backoff=None,\n"           \
    "     retry_until=None, expires=None, on_expire=None, context=None, track=None,\n"             \
    "     unique_scope=None, on_duplicate=None, max_wait=None, guard=None, idempotent=None,\n"     \
    "     idempotent_for=None)\n--\n\n"                                                            \
    "Stores a job and returns its id when the store has confirmed it.\n\n"                         \
    "Times are seconds or a timedelta; at an aware datetime; retry_until and expires either.\n"    \
    "priority: 0 to 9, higher first. unique: one waiting or running job with that key; a second\n" \
    "push returns its id (on_duplicate='keep'), replaces it, max_wait at most ('replace'), or\n"   \
    "raises DuplicateJob ('error'). guard: [SQL or script, parameters] that the store judges in\n" \
    "the same step. idempotent: an id that exists is no error. track: result and progress stay\n"  \
    "readable for an hour at least. context: {str: str} that travels along.\n\n"                   \
    "Raises PayloadError (path), QueueFull, GuardRefused, DuplicateJob, OutcomeUnknown (id: the\n" \
    "answer was lost), StoreError; ValueError and TypeError for a wrong option. Nothing is\n"      \
    "stored then, but perhaps with OutcomeUnknown."

#define DOC_PUSH_STATEMENT                                                                         \
    "push_statement($self, /, name, payload=None, *, paramstyle=None, **options)\n--\n\n"          \
    "(SQL, parameters) that push within the caller's transaction: PostgreSQL, MariaDB,\n"          \
    "SQLite; options are those of push().\n\n"                                                     \
    "Its answer is one row (id, result), never an SQL error: 'stored', 'held' (that job has\n"     \
    "the key), 'replaced', 'full' or 'duplicate'. paramstyle of placeholders: 'qmark'\n"           \
    "(?), 'format' (%s) or 'numeric' ($1); None: '?' for SQLite, else '%s'. migrate() first: no\n" \
    "transaction can make the tables. Listeners of job.pushed are not called."

#define DOC_RESERVE                                                                              \
    "reserve($self, /, queues=(), lease=30)\n--\n\n"                                             \
    "Takes at most one job for so many seconds (1 to 86400); None: there is none.\n\n"           \
    "queues: a name, 'high,default' or an iterable, looked at in that order; the connection's\n" \
    "own without any. The caller ends it by done, retry, release, fail or delete and keeps it\n" \
    "longer with extend. Does the maintenance that is due."

#define DOC_STATS                                                                               \
    "stats($self, /, queue, minutes=60)\n--\n\n"                                                \
    "The Stats of one queue with the minutes that began within the last so many (0 to 1440).\n" \
    "A queue that nobody used counts 0 everywhere."
#define DOC_ALL_STATS \
    "all_stats($self, /, minutes=0)\n--\n\nThe Stats of every queue, by name; see stats()."
#define DOC_CAPACITY                                                                               \
    "capacity($self, /, queue, n)\n--\n\n"                                                         \
    "From now on that queue holds at most n jobs, waiting, running and dead ones together; more\n" \
    "pushes raise QueueFull. 0: no limit. Nothing that is there is removed; stats() tells it."
#define DOC_QUEUES "queues($self, /)\n--\n\nNames of the store's queues, sorted."
#define DOC_COUNTERS \
    "counters($self, /)\n--\n\n{name: number} of what this object has done; asks no store."
#define DOC_FIND                 \
    "find($self, /, id)\n--\n\n" \
    "The JobInfo of that job as it stands in the store, None when there is none (any more)."
#define DOC_JOBS                                                                                  \
    "jobs($self, /, queue, state, limit=50, after=None)\n--\n\n"                                  \
    "At most limit (1 to 1000) JobInfos of a queue's jobs in one state, in the order they will\n" \
    "run; after: the last id of the page before."
#define DOC_DEAD                                                                                 \
    "dead($self, /, " FILTER ", limit=50, after=None)\n--\n\n"                                   \
    "At most limit (1 to 1000) JobInfos of dead jobs, newest first; older_than: seconds since\n" \
    "death; after: the last id of the page before."
#define DOC_RETRY                                                                \
    "retry($self, /, ids=None, *, " FILTER ", all=False, dry_run=False)\n--\n\n" \
    "Puts dead jobs back in place, counters fresh, and returns how many.\n\n" BY_IDS_OR_FILTER
#define DOC_FORGET                                                                \
    "forget($self, /, ids=None, *, " FILTER ", all=False, dry_run=False)\n--\n\n" \
    "Deletes dead jobs and returns how many.\n\n" BY_IDS_OR_FILTER
#define DOC_FLUSH                                                                \
    "flush($self, /, ids=None, *, " FILTER ", all=False, dry_run=False)\n--\n\n" \
    "Deletes dead jobs and returns how many, as forget().\n\n" BY_IDS_OR_FILTER
#define DOC_PRUNE                                                                                \
    "prune($self, /, dry_run=False, older_than=None)\n--\n\n"                                    \
    "Deletes what was only kept: finished jobs whose time is over, and dead jobs that died so\n" \
    "many seconds ago. Returns the number of dead ones."
#define DOC_PAUSE                                                                                 \
    "pause($self, /, queue=None, ttl=0)\n--\n\n"                                                  \
    "Workers take no jobs of that queue (None: of no queue) until it is resumed or ttl seconds\n" \
    "are over (0: until resumed). Pushes are stored as ever."
#define DOC_RESUME \
    "resume($self, /, queue=None)\n--\n\nEnds the pause of that queue, or the one of all."
#define DOC_RESTART_WORKERS             \
    "restart_workers($self, /)\n--\n\n" \
    "Every worker made before finishes what runs and ends with 0, to be started anew."
#define DOC_CANCEL                                                                                 \
    "cancel($self, /, id, hard=False)\n--\n\n"                                                     \
    "A waiting job is dead ('cancelled'); a running one is told so (Job.is_cancelled), and hard\n" \
    "ends it as at its time limit. False: no waiting or running job has that id."
#define DOC_CLEAR \
    "clear($self, /, queue)\n--\n\nRemoves every waiting job of a queue; returns how many."
#define DOC_WORKERS                                                                          \
    "workers($self, /)\n--\n\n"                                                              \
    "The live workers of the store, a dict each: id, host, pid, queues, names, processes,\n" \
    "running, held, started_at, alive_until (datetimes), lease (seconds)."
#define DOC_DOCTOR                                                                                 \
    "doctor($self, /, audit=False)\n--\n\n"                                                        \
    "Looks the store, the way to it and the workers over. A dict for each finding: grade ('ok',\n" \
    "'note', 'problem'), check (a stable word), text, advice or None. With audit every job is\n"   \
    "counted by its id, while traffic goes on. A store that cannot be used is a finding."
#define DOC_MIGRATE \
    "migrate($self, /)\n--\n\nCreates or updates what the store needs (tables, functions)."
#define DOC_PING "ping($self, /)\n--\n\nSeconds of one round trip to the store."

#endif
