/* SPDX-License-Identifier: MIT
 *
 * The guard of a push (rule B7): from --guard and --guard-param, or from a line of "push -". A
 * value is a scalar of JSON.
 */
#include "console/guard.h"

#include <string.h>

#include "util/alloc.h"
#include "util/error.h"

enum { PARAMS_MAX = 100 };

/* One scalar; its bytes are copied. 0: it is none (a container, a time, too large). */
static int take_scalar(const jobq_token *token, jobq__arena *arena, jobq_param *out)
{
    *out = (jobq_param){.type = JOBQ_PARAM_NULL};
    switch (token->kind) {
    case JOBQ_NIL:
        return 1;
    case JOBQ_BOOL:
        out->type = JOBQ_PARAM_INT;
        out->integer = token->as.boolean;
        return 1;
    case JOBQ_INT:
        out->type = JOBQ_PARAM_INT;
        out->integer = token->as.integer;
        return 1;
    case JOBQ_DOUBLE:
        out->type = JOBQ_PARAM_DOUBLE;
        out->real = token->as.number;
        return 1;
    case JOBQ_STR:
    case JOBQ_BYTES:
        out->type = token->kind == JOBQ_STR ? JOBQ_PARAM_TEXT : JOBQ_PARAM_BYTES;
        out->bytes.n = token->as.text.n;
        out->bytes.p = jobq__arena_copy(arena, token->as.text.p, token->as.text.n);
        return out->bytes.p ? 1 : jobq__error_nomem();
    default:
        return 0;
    }
}

/* ---- from the command line ------------------------------------------------------------------- */

/* What is no scalar of JSON is a text as it stands. */
static int read_word(jobq_reader *reader, const char *word, jobq__arena *arena, jobq_param *out)
{
    const size_t n = strlen(word);
    jobq_token token, more;
    int rc = 0;

    jobq_reader_open(reader, JOBQ_FORMAT_JSON, word, n);
    if (jobq_payload_check(JOBQ_FORMAT_JSON, word, n) == 0 && jobq_reader_next(reader, &token) == 1)
        rc = take_scalar(&token, arena, out);
    while (rc > 0 && jobq_reader_next(reader, &more) > 0)
        rc = 0;
    if (rc != 0)
        return rc < 0 ? rc : 0;
    jobq__error_clear();
    *out = (jobq_param){.type = JOBQ_PARAM_TEXT, .bytes = {word, n}};
    return 0;
}

int jobq__guard_of_words(const char *text, const char *const *words, size_t count,
                         jobq__arena *arena, jobq_message *m)
{
    jobq_param *params = jobq__arena_alloc(arena, (count + 1) * sizeof(*params));
    jobq_reader *reader = jobq_reader_new();
    int rc = 0;

    if (!params || !reader) {
        jobq_reader_free(reader);
        return jobq__error_nomem();
    }
    for (size_t i = 0; i < count && rc == 0; i++)
        rc = read_word(reader, words[i], arena, &params[i]);
    if (rc == 0)
        rc = jobq_message_set_guard(m, &(jobq_statement){{text, strlen(text)}, params, count});
    jobq_reader_free(reader);
    return rc;
}

/* ---- from a line ----------------------------------------------------------------------------- */

typedef struct {
    jobq_reader *reader;
    jobq__arena arena;
    jobq_param params[PARAMS_MAX];
    jobq_statement statement;
} line_guard;

static int malformed(void)
{
    return jobq__error_set(JOBQ_EPAYLOAD, "\"guard\" must be a statement, or a list of one and its "
                                          "values: [\"SELECT ?\", [1]]");
}

static int read_text(line_guard *g, const jobq_token *token)
{
    if (token->kind != JOBQ_STR)
        return malformed();
    g->statement.text.n = token->as.text.n;
    g->statement.text.p = jobq__arena_copy(&g->arena, token->as.text.p, token->as.text.n);
    return g->statement.text.p ? 0 : jobq__error_nomem();
}

/* The values behind the head of their list. */
static int read_values(line_guard *g, size_t count)
{
    jobq_token token;
    int rc = 1;

    if (count > PARAMS_MAX)
        return malformed();
    for (size_t i = 0; i < count && rc > 0; i++) {
        rc = jobq_reader_next(g->reader, &token);
        rc = rc == 1 ? take_scalar(&token, &g->arena, &g->params[i]) : rc;
        if (rc == 0)
            return malformed();
    }
    g->statement.params = g->params;
    g->statement.param_count = count;
    return rc < 0 ? rc : 0;
}

static int read_all(line_guard *g)
{
    jobq_token token;
    size_t parts;
    int rc = jobq_reader_next(g->reader, &token);

    if (rc != 1)
        return rc < 0 ? rc : malformed();
    if (token.kind != JOBQ_LIST)
        return read_text(g, &token);
    parts = token.as.count;
    if (parts < 1 || parts > 2)
        return malformed();
    rc = jobq_reader_next(g->reader, &token);
    rc = rc == 1 ? read_text(g, &token) : rc < 0 ? rc : malformed();
    if (rc < 0 || parts == 1)
        return rc;
    rc = jobq_reader_next(g->reader, &token);
    if (rc < 0)
        return rc;
    return token.kind == JOBQ_LIST ? read_values(g, token.as.count) : malformed();
}

int jobq__guard_of_json(const char *p, size_t n, jobq_message *m)
{
    line_guard *g = jobq__zalloc(sizeof(*g));
    int rc;

    if (!g)
        return jobq__error_nomem();
    g->reader = jobq_reader_new();
    rc = g->reader ? jobq_payload_check(JOBQ_FORMAT_JSON, p, n) : jobq__error_nomem();
    if (rc == 0) {
        jobq_reader_open(g->reader, JOBQ_FORMAT_JSON, p, n);
        rc = read_all(g);
    }
    rc = rc ? rc : jobq_message_set_guard(m, &g->statement);
    jobq_reader_free(g->reader);
    jobq__arena_free(&g->arena);
    jobq__free(g);
    return rc;
}
