/* SPDX-License-Identifier: MIT
 *
 * Running statements by a deadline. libpq's own waiting calls know none and sit out signals, so
 * only its non-blocking ones are used; libpq keeps reading while it sends, as it must.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "driver/pgsql/pgsql.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/rng.h"

enum { ATTEMPTS = 10, AGAIN = 1 };

char *jobq__pgsql_expand(const pgsql_store *store, const char *sql)
{
    jobq__buf text = {0};
    char *copy;

    for (const char *p = sql; *p;) {
        size_t n = strcspn(p, "@#");

        jobq__buf_add(&text, p, n);
        p += n;
        if (*p && p[1] == *p) { /* doubled: itself */
            jobq__buf_addc(&text, *p);
            p += 2;
        } else if (*p) {
            jobq__buf_adds(&text, *p++ == '@' ? store->schema : store->channel);
        }
    }
    jobq__buf_addc(&text, '\0');
    copy = text.failed ? NULL : jobq__memdup(text.p, text.n);
    jobq__buf_free(&text);
    if (!copy)
        jobq__error_nomem();
    return copy;
}

/* ---- waiting for the socket ------------------------------------------------------------------ */

int jobq__pgsql_poll(pgsql_store *store, bool writing)
{
    for (;;) {
        int64_t left_us = store->deadline_us - jobq__clock_mono_us();
        struct pollfd fd = {.fd = PQsocket(store->conn), .events = POLLIN};
        int n;

        if (left_us <= 0)
            return JOBQ_ETIMEOUT;
        if (writing)
            fd.events |= POLLOUT;
        n = poll(&fd, 1, (int)(left_us / 1000 < 60000 ? left_us / 1000 + 1 : 60000));
        if (n > 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return JOBQ_EIO;
    }
}

static int flush(pgsql_store *store)
{
    int rc;

    for (;;) {
        rc = PQflush(store->conn);
        store->sent = rc == 0;
        if (rc <= 0)
            return rc ? JOBQ_EIO : 0;
        rc = jobq__pgsql_poll(store, true);
        if (rc < 0)
            return rc;
        if (!PQconsumeInput(store->conn))
            return JOBQ_EIO;
    }
}

/* The next result into *res_out, NULL when the statement has ended. */
static int next_result(pgsql_store *store, PGresult **res_out)
{
    while (PQisBusy(store->conn)) {
        int rc = jobq__pgsql_poll(store, false);

        if (rc < 0)
            return rc;
        if (!PQconsumeInput(store->conn))
            break; /* what had come before may still say why */
    }
    *res_out = PQgetResult(store->conn);
    return 0;
}

/* The server waits for data or sends some: nothing that we can answer. */
static bool is_copy(const PGresult *res)
{
    ExecStatusType status = PQresultStatus(res);

    return status == PGRES_COPY_IN || status == PGRES_COPY_OUT || status == PGRES_COPY_BOTH;
}

static bool is_good(const PGresult *res)
{
    ExecStatusType status = PQresultStatus(res);

    return status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK;
}

/* Reads the whole answer: the commit comes after the rows, so only the end says that they hold. */
static int collect(pgsql_store *store, PGresult **res_out)
{
    PGresult *kept = NULL, *res;
    int rc = flush(store);

    while (rc == 0 && (rc = next_result(store, &res)) == 0 && res) {
        if (kept && !is_good(kept)) {
            PQclear(res); /* the first refusal is the cause */
            continue;
        }
        PQclear(kept);
        kept = res;
        if (is_copy(res)) {
            store->suspect = true;
            break;
        }
    }
    if (rc == 0 && PQstatus(store->conn) == CONNECTION_BAD && (!kept || is_good(kept)))
        rc = JOBQ_EIO;
    if (rc < 0 || !kept) {
        PQclear(kept);
        return rc ? rc : JOBQ_EIO;
    }
    *res_out = kept;
    return 0;
}

static int judge_loss(pgsql_store *store, int rc, bool write)
{
    bool unsure = write && store->sent;

    if (store->pid) {
        store->lost_pid = store->pid;
        store->lost_born_us = store->born_us;
    }
    return rc == JOBQ_ETIMEOUT ? jobq__pgsql_late(store, unsure)
                               : jobq__pgsql_broken(store, unsure);
}

/* ---- statements ------------------------------------------------------------------------------ */

static int set_values(pgsql_params *p)
{
    if (p->bytes.failed)
        return jobq__error_nomem();
    for (int i = 0; i < p->n; i++) {
        /* an empty value is not a null one */
        p->values[i] = p->lengths[i] < 0    ? NULL
                       : p->lengths[i] == 0 ? ""
                                            : p->bytes.p + p->offsets[i];
        p->formats[i] = 1;
    }
    return 0;
}

static const char *text_of(pgsql_store *store, pgsql_statement which, const char *sql)
{
    if (!store->texts[which])
        store->texts[which] = jobq__pgsql_expand(store, sql);
    return store->texts[which];
}

/* The answer to what was sent and changes no job. */
static int expect_good(pgsql_store *store)
{
    PGresult *res = NULL;
    int rc = collect(store, &res);

    if (rc < 0)
        return judge_loss(store, rc, false);
    if (!is_good(res))
        rc = jobq__pgsql_refused(store, res, false);
    PQclear(res);
    return rc;
}

static int prepare(pgsql_store *store, pgsql_statement which, const pgsql_params *p)
{
    char name[24];
    int rc;

    snprintf(name, sizeof(name), "jobqueue_%d", (int)which);
    if (!PQsendPrepare(store->conn, name, store->texts[which], p->n, p->types))
        return jobq__pgsql_broken(store, false);
    rc = expect_good(store);
    store->prepared[which] = rc == 0;
    return rc;
}

/* Prepared at its second use: the first, which may be the last, is one trip that way. */
static bool send_call(pgsql_store *store, pgsql_statement which, const pgsql_params *p)
{
    char name[24];

    snprintf(name, sizeof(name), "jobqueue_%d", (int)which);
    if (!store->prepared[which])
        return PQsendQueryParams(store->conn, store->texts[which], p->n, p->types, p->values,
                                 p->lengths, p->formats, 1);
    return PQsendQueryPrepared(store->conn, name, p->n, p->values, p->lengths, p->formats, 1);
}

/* AGAIN: the store refused for a reason that passes. */
static int call_once(pgsql_store *store, pgsql_statement which, const pgsql_params *p, bool write,
                     bool last, PGresult **res_out)
{
    PGresult *res = NULL;
    bool known = store->pooled || store->prepared[which] || !store->used[which];
    int rc = known ? 0 : prepare(store, which, p);

    if (rc < 0)
        return rc;
    store->used[which] = !store->pooled;
    store->sent = false;
    if (!send_call(store, which, p))
        return jobq__pgsql_broken(store, false);
    rc = collect(store, &res);
    if (rc < 0)
        return judge_loss(store, rc, write);
    if (is_good(res)) {
        *res_out = res;
        return 0;
    }
    last |= store->begun; /* what came before in the transaction is gone, too */
    rc = !last && jobq__pgsql_is_transient(res)
             ? AGAIN
             : jobq__pgsql_refused(store, res, write && store->sent);
    PQclear(res);
    return rc;
}

static void nap(int attempt)
{
    struct timespec span = {0, (long)(jobq__rng_unit() * 2e6 * (attempt + 1))};

    nanosleep(&span, NULL);
}

int jobq__pgsql_run(pgsql_store *store, pgsql_statement which, const char *sql,
                    pgsql_params *params, bool write, PGresult **res_out)
{
    pgsql_params none = {0}, *p = params ? params : &none;
    int rc = set_values(p);

    if (rc == 0 && !text_of(store, which, sql))
        rc = jobq__error_code();
    if (rc == 0)
        rc = AGAIN;
    for (int i = 0; rc == AGAIN && i < ATTEMPTS; i++) {
        if (i)
            nap(i);
        rc = call_once(store, which, p, write && !store->begun,
                       i == ATTEMPTS - 1 || jobq__clock_mono_us() >= store->deadline_us, res_out);
    }
    jobq__buf_free(&p->bytes);
    return rc;
}

int jobq__pgsql_command(pgsql_store *store, const char *sql)
{
    if (!PQsendQuery(store->conn, sql))
        return jobq__pgsql_broken(store, false);
    return expect_good(store);
}

/* ---- transactions of several statements ------------------------------------------------------ */

#define BEGIN_FOREIGN "BEGIN; SET LOCAL search_path TO DEFAULT"
/* Whatever the caller's statement has set is set back; ours look names up where nobody puts objects
 * of his own. Behind a pooler the session is not ours to reset. */
#define COMMIT_FOREIGN "COMMIT; RESET ROLE; RESET ALL; SET search_path = pg_catalog, pg_temp"

int jobq__pgsql_begin(pgsql_store *store)
{
    int rc = jobq__pgsql_command(store, BEGIN_FOREIGN);

    store->begun = rc == 0;
    store->suspect |= rc < 0; /* it may have got half way */
    return rc;
}

static int commit(pgsql_store *store)
{
    PGresult *res = NULL;
    int rc;

    store->sent = false;
    if (!PQsendQuery(store->conn, store->pooled ? "COMMIT" : COMMIT_FOREIGN))
        return jobq__pgsql_broken(store, false);
    rc = collect(store, &res);
    if (rc < 0)
        return judge_loss(store, rc, true);
    if (!is_good(res))
        rc = jobq__pgsql_refused_foreign(store, res, "transaction", store->sent);
    PQclear(res);
    return rc;
}

int jobq__pgsql_finish(pgsql_store *store, int rc)
{
    struct jobq_error saved;

    store->begun = false;
    if (rc == 0)
        return commit(store);
    jobq__error_save(&saved);
    if (!store->suspect)
        store->suspect = jobq__pgsql_command(store, "ROLLBACK") < 0;
    jobq__error_restore(&saved);
    return rc;
}

int jobq__pgsql_ask(pgsql_store *store, const char *sql, const pgsql_foreign *params,
                    PGresult **res_out)
{
    int rc;

    store->sent = false;
    if (!PQsendQueryParams(store->conn, sql, params->n, params->types, params->values,
                           params->lengths, params->formats, 0))
        return jobq__pgsql_broken(store, false);
    rc = collect(store, res_out);
    return rc < 0 ? judge_loss(store, rc, false) : 0;
}
