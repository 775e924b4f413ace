/* SPDX-License-Identifier: MIT
 *
 * Prints doc/configuration.md ("configuration") or doc/errors.md ("errors") from the tables that
 * the library itself uses. Run by tools/gen-docs.
 */
#include <jobqueue/conf.h>
#include <stdio.h>
#include <string.h>

static const struct {
    int scope;
    const char *title, *text;
} parts[] = {
    {JOBQ_SCOPE_CONNECTION, "Connection",
     "In the DSN's query string (`sqlite:queue.db?synchronous=normal`) or given to the queue's "
     "constructor, which wins.\n"
     "What only some stores have is refused by the others."},
    {JOBQ_SCOPE_WORKER, "Worker",
     "Given to the worker's constructor, to `run`, or on the command line of `work`; the later one "
     "wins."},
    {JOBQ_SCOPE_HANDLER, "Handler",
     "Given where a handler is registered. They go over the worker's and are read when a job runs, "
     "so a change reaches jobs "
     "that are queued already."},
    {JOBQ_SCOPE_PUSH, "Push",
     "Given with a job. `tries`, `timeout` and `backoff` travel with it and go over what handler "
     "and worker say."},
};

/* A cell: `|` would end it. */
static void print_cell(const char *text)
{
    fputs("| ", stdout);
    for (; *text; text++)
        printf(*text == '|' ? "\\|" : "%c", *text);
    putchar(' ');
}

static void print_part(int scope)
{
    const char *name, *type, *range, *fallback, *meaning;
    int scopes;

    fputs("| option | type | allowed | default | meaning |\n|---|---|---|---|---|\n", stdout);
    for (size_t i = 0; jobq_conf_describe(i, &name, &type, &range, &fallback, &scopes, &meaning);
         i++) {
        char code[64];

        if (!(scopes & scope))
            continue;
        snprintf(code, sizeof(code), "`%s`", name);
        print_cell(code);
        print_cell(type);
        print_cell(range);
        print_cell(fallback ? fallback : "");
        print_cell(meaning);
        puts("|");
    }
}

/* driver/registry.c says which of them a build has. */
static void print_stores(void)
{
    static const char *const rows[][3] = {
        {"SQLite", "sqlite:queue.db, sqlite:///var/lib/app/queue.db",
         "a file, relative to the current folder or absolute"},
        {"Redis", "redis://[user[:password]@]host[:6379][/database]", "rediss:// with TLS"},
        {"Redis", "redis+unix:///run/redis.sock", "through a Unix socket"},
        {"Redis", "redis-sentinel://host[:26379][,host2:26379]/MASTER[/database]",
         "whoever is the master now"},
        {"Redis", "redis-cluster://[[user]:password@]host[:6379][,host2:6379]",
         "a Cluster; rediss-cluster:// with TLS"},
        {"PostgreSQL", "postgresql://[user[:password]@]host[:5432]/database",
         "also postgres://; several hosts: h1:5432,h2:5432"},
        {"PostgreSQL", "postgresql:///database?host=/run/postgresql", "through a Unix socket"},
        {"MariaDB, MySQL", "mysql://[user[:password]@]host[:3306]/database", "also mariadb://"},
        {"MariaDB, MySQL", "mysql://user[:password]@/database?socket=/run/mysqld/mysqld.sock",
         "through a Unix socket"},
        {"memory", "memory:", "this process only, gone with it: for tests"},
    };

    puts("\n## Which store\n\n"
         "One text, the DSN, names the store. A library says with `jobqueue version` (PHP: `php "
         "--ri jobqueue`) which of them it was built with.\n"
         "`%` and two hexadecimal digits stand for a byte that would mean something else: "
         "a password `a@b` is written `a%40b`.\n\n"
         "| store | DSN | |\n|---|---|---|");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        printf("| %s | `%s` | %s |\n", rows[i][0], rows[i][1], rows[i][2]);
    puts("\n"
         "Without a DSN the environment's `JOBQUEUE_DSN` is meant, and without that "
         "`sqlite:jobqueue.db`. A plain word instead of a DSN is\n"
         "a connection by name: `my-redis` is `JOBQUEUE_DSN_MY_REDIS`. Options stand behind a "
         "`?`, separated by `&`. PostgreSQL also takes\n"
         "libpq's own keywords there (`sslmode`, `target_session_attrs`, …). Messages, "
         "statistics and lists show a DSN without its password.");
}

static void print_configuration(void)
{
    puts("# Options\n\n"
         "<!-- Made by tools/gen-docs from libjobqueue/core/conf_table.c; changes go there. -->\n\n"
         "One option has one name: `max_time` in C, in a DSN and here, `maxTime` in PHP, "
         "`--max-time` on the command line.\n"
         "Times are seconds and may have fractions, down to a millisecond. A value that is "
         "negative, no number or out of its\n"
         "range is an error that says what is allowed; an unknown name is an error that gives the "
         "nearest one (of a connection,\n"
         "when none is near: those that its store takes); an option in "
         "the wrong place is an error that says where it belongs.");
    print_stores();
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        printf("\n## %s\n\n%s\n\n", parts[i].title, parts[i].text);
        print_part(parts[i].scope);
    }
}

/* What php-ext/error.c and python-ext/src/_core/error.c make of a code; of others QueueException
 * and QueueError. */
static const struct {
    int code;
    const char *php, *python;
} classes[] = {
    {JOBQ_EINVAL, "\\ValueError", "ValueError"},
    {JOBQ_ENOMEM, NULL, "MemoryError"},
    {JOBQ_ECONF, "\\ValueError; ConnectionException when the store says it",
     "ValueError; StoreError when the store says it"},
    {JOBQ_ECONNECT, "ConnectionException", "StoreError"},
    {JOBQ_EIO, "ConnectionException", "StoreError"},
    {JOBQ_ETIMEOUT, "ConnectionException", "StoreError"},
    {JOBQ_EINTR, "ConnectionException", "StoreError"},
    {JOBQ_EPROTO, "ConnectionException", "StoreError"},
    {JOBQ_EBUSY, "ConnectionException", "StoreError"},
    {JOBQ_EEXISTS, "DuplicateJob (id)", "DuplicateJob (id)"},
    {JOBQ_ENOTFOUND, "NotFound", "NotFound"},
    {JOBQ_ELEASE, "LeaseLost", "LeaseLost"},
    {JOBQ_ELIMIT, "PayloadException (path)", "PayloadError (path)"},
    {JOBQ_EFULL, "QueueFull (queue)", "QueueFull (queue)"},
    {JOBQ_EGUARD, "GuardRefused", "GuardRefused"},
    {JOBQ_EPAYLOAD, "PayloadException (path)", "PayloadError (path)"},
    {JOBQ_EUNKNOWN, "OutcomeUnknown (id)", "OutcomeUnknown (id)"},
    {JOBQ_EPENDING, "WaitTimeout (id)", "WaitTimeout (id)"},
    {JOBQ_EDEAD, "JobDead (id)", "JobDead (id)"},
};

static void print_classes(int code)
{
    const char *php = NULL, *python = NULL;

    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
        if (classes[i].code != code)
            continue;
        php = classes[i].php;
        python = classes[i].python;
    }
    printf(" %s | %s |\n", php ? php : "QueueException", python ? python : "QueueError");
}

static void print_errors(void)
{
#define ROW(name, value, word, meaning) {#name, value, word, meaning},
    static const struct {
        const char *name;
        int value;
        const char *word, *meaning;
    } rows[] = {JOBQ_ERROR_LIST(ROW)};
#undef ROW

    puts("# Error codes\n\n"
         "<!-- Made by tools/gen-docs from libjobqueue/include/jobqueue/error.h; changes go there. "
         "-->\n\n"
         "C functions return the code; `jobq_error_last()` has the message, the driver, the "
         "store's own code and what the\n"
         "error is about. The word is stable and meant for programs: exceptions carry it as "
         "`errorCode` (PHP) or `error_code` (Python),\n"
         "and say whether the same call may succeed later: `isRetryable()`, `is_retryable()`. All "
         "of them extend `QueueException` or `QueueError`\n"
         "but PHP's and Python's own; in brackets stands what they say beside.\n\n"
         "| code | number | word | meaning | PHP | Python |\n|---|---|---|---|---|---|");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        printf("| `%s` | %d | `%s` | %s |", rows[i].name, rows[i].value, rows[i].word,
               rows[i].meaning);
        print_classes(rows[i].value);
    }
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "configuration") == 0) {
        print_configuration();
        return 0;
    }
    if (argc == 2 && strcmp(argv[1], "errors") == 0) {
        print_errors();
        return 0;
    }
    fputs("usage: gen_docs configuration|errors\n", stderr);
    return 2;
}
