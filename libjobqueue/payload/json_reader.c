/* SPDX-License-Identifier: MIT
 *
 * The streaming JSON reader: gives the tokens that the same value in msgpack would give.
 * json_count.c has been over the text before, so that heads of containers know their counts.
 */
#include <string.h>

#include "payload/json_reader.h"
#include "payload/json_text.h"
#include "util/str.h"

static void skip_blanks(jobq_reader *r)
{
    while (r->at < r->n && jobq__json_blank(r->p[r->at]))
        r->at++;
}

static uint32_t next_count(jobq_reader *r)
{
    uint32_t count;

    memcpy(&count, r->counts.p + r->bracket++ * sizeof(count), sizeof(count));
    return count;
}

/* ---- scalars --------------------------------------------------------------------------------- */

static int expect(jobq_reader *r, char c, const char *what)
{
    skip_blanks(r);
    if (r->at == r->n)
        return jobq__json_truncated(r, what);
    if (r->p[r->at] != c)
        return jobq__json_malformed(r, r->at, what);
    r->at++;
    return 0;
}

typedef struct {
    const char *p;
    size_t n, offset;
    int base; /* JOBQ__KEY_INPUT or, where it had escapes, the buffer's */
} text_value;

/* Appends the decoded string whose inside is r->p[from .. to). */
static int decode_string(jobq_reader *r, jobq__buf *buf, size_t from, size_t to)
{
    while (from < to) {
        const char *escape = memchr(r->p + from, '\\', to - from);
        size_t plain = escape ? (size_t)(escape - r->p) - from : to - from, len;

        jobq__buf_add(buf, r->p + from, plain);
        from += plain;
        if (!escape)
            break;
        len = jobq__json_unescape(buf, escape, to - from);
        if (len == 0)
            return jobq__json_malformed(r, from,
                                        "an escape that is none, or half of a surrogate pair");
        from += len;
    }
    return buf->failed ? jobq__reader_nomem(r) : 0;
}

/* The string literal at r->at, decoded into buf if it has escapes. */
static int read_string(jobq_reader *r, jobq__buf *buf, text_value *out)
{
    size_t from = r->at + 1, end = jobq__json_skip_string(r, r->at), to = end - 1, start = buf->n;
    bool escapes = false;
    int rc;

    for (size_t i = from; i < to; i++) {
        if ((unsigned char)r->p[i] < 0x20)
            return jobq__json_malformed(r, i,
                                        "a control character in a string (write it as an escape)");
        escapes |= r->p[i] == '\\';
    }
    if (!jobq__utf8_valid(r->p + from, to - from))
        return jobq__json_malformed(r, from, "a string is not valid utf-8");
    if (escapes) {
        rc = decode_string(r, buf, from, to);
        if (rc < 0)
            return rc;
        *out = (text_value){buf->p + start, buf->n - start, start, JOBQ__KEY_HELD};
    } else {
        *out = (text_value){r->p + from, to - from, from, JOBQ__KEY_INPUT};
    }
    r->at = end;
    return 0;
}

static int expect_string(jobq_reader *r, jobq__buf *buf, text_value *out, const char *what)
{
    skip_blanks(r);
    if (r->at == r->n)
        return jobq__json_truncated(r, what);
    if (r->p[r->at] != '"')
        return jobq__json_malformed(r, r->at, what);
    return read_string(r, buf, out);
}

static int take_word(jobq_reader *r, jobq_token *t)
{
    static const struct {
        const char *word;
        jobq_kind kind;
        bool value;
    } words[] = {{"null", JOBQ_NIL, false}, {"true", JOBQ_BOOL, true}, {"false", JOBQ_BOOL, false}};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        size_t len = strlen(words[i].word), have = r->n - r->at < len ? r->n - r->at : len;

        if (memcmp(r->p + r->at, words[i].word, have) != 0)
            continue;
        if (have < len)
            return jobq__json_truncated(r, "a word is cut short");
        t->kind = words[i].kind;
        t->as.boolean = words[i].value;
        r->at += len;
        return 0;
    }
    return jobq__json_malformed(r, r->at, "something that is no json value");
}

static int take_number(jobq_reader *r, jobq_token *t)
{
    bool whole, cut;
    size_t at = r->at, len = jobq__json_number(r->p + at, r->n - at, &whole, &cut);

    if (len == 0)
        return cut ? jobq__json_truncated(r, "a number is cut short")
                   : jobq__json_malformed(r, at, "a number that is not json's");
    if (whole && !jobq__json_integer(r->p + at, len, t))
        return jobq__json_malformed(
            r, at, "an integer outside -9223372036854775808 to 18446744073709551615");
    if (!whole) {
        t->kind = JOBQ_DOUBLE;
        if (!jobq__json_double(r->p + at, len, &t->as.number))
            return jobq__json_malformed(r, at, "a number beyond what a double holds");
    }
    r->at += len;
    return 0;
}

/* ---- the forms: objects with one special key ------------------------------------------------- */

static int form_bytes(jobq_reader *r, const text_value *text, jobq_token *t, size_t at)
{
    size_t start = r->scratch.n;

    if (text->base == JOBQ__KEY_INPUT) {
        jobq__buf_reserve(&r->scratch, text->n + 1);
        if (r->scratch.failed)
            return jobq__reader_nomem(r);
    } else {
        start = text->offset;
    }
    t->kind = JOBQ_BYTES;
    t->as.text.p = r->scratch.p + start;
    if (!jobq__base64_decode(r->scratch.p + start, text->p, text->n, &t->as.text.n))
        return jobq__json_malformed(r, at, "\"$bytes\" needs padded base64");
    return 0;
}

static int form_time(jobq_reader *r, const text_value *text, jobq_token *t, size_t at)
{
    t->kind = JOBQ_TIME;
    if (!jobq__rfc3339_parse(text->p, text->n, &t->as.time.seconds, &t->as.time.nanoseconds))
        return jobq__json_malformed(
            r, at, "\"$time\" needs an rfc 3339 time such as \"2026-11-30T10:00:00.123456Z\"");
    return 0;
}

static int form_double(jobq_reader *r, const text_value *text, jobq_token *t, size_t at)
{
    static const struct {
        const char *word;
        double value;
    } words[] = {
        {"NaN", __builtin_nan("")}, {"Infinity", __builtin_inf()}, {"-Infinity", -__builtin_inf()}};

    t->kind = JOBQ_DOUBLE;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strlen(words[i].word) == text->n && !memcmp(words[i].word, text->p, text->n)) {
            t->as.number = words[i].value;
            return 0;
        }
    }
    return jobq__json_malformed(r, at, "\"$double\" needs \"NaN\", \"Infinity\" or \"-Infinity\"");
}

/* {"$bytes": TEXT} and its like, behind the key. */
static int take_text_form(jobq_reader *r, jobq_token *t, int form)
{
    text_value text = {0};
    size_t at;
    int rc = expect(r, ':', "a ':' is missing behind an object's key");

    if (rc < 0)
        return rc;
    skip_blanks(r);
    at = r->at;
    rc =
        expect_string(r, &r->scratch, &text, "\"$bytes\", \"$time\" and \"$double\" need a string");
    if (rc < 0)
        return rc;
    rc = form == JOBQ__FORM_BYTES  ? form_bytes(r, &text, t, at)
         : form == JOBQ__FORM_TIME ? form_time(r, &text, t, at)
                                   : form_double(r, &text, t, at);
    return rc < 0 ? rc : expect(r, '}', "a '}' is missing");
}

/* {"$map": [[k, v], ...]}, behind the key. */
static int take_pairs(jobq_reader *r, jobq_token *t, size_t at)
{
    int rc = expect(r, ':', "a ':' is missing behind an object's key");

    if (rc == 0)
        rc = expect(r, '[', "\"$map\" needs a list of [key, value] pairs");
    if (rc < 0)
        return rc;
    t->kind = JOBQ_MAP;
    t->as.count = next_count(r);
    return jobq__reader_enter(r, JOBQ__FRAME_PAIRS, t->as.count, at);
}

static int take_object(jobq_reader *r, jobq_token *t, size_t at)
{
    uint32_t count = next_count(r);
    size_t inside = ++r->at;
    text_value key = {0};
    int form = JOBQ__FORM_NONE, rc;

    if (count == 1) {
        rc = expect_string(r, &r->scratch, &key, "an object's key must be a string");
        if (rc < 0)
            return rc;
        form = jobq__json_form(key.p, key.n);
    }
    if (form == JOBQ__FORM_MAP)
        return take_pairs(r, t, at);
    if (form != JOBQ__FORM_NONE)
        return take_text_form(r, t, form);
    r->at = inside;
    t->kind = JOBQ_MAP;
    t->as.count = count;
    return jobq__reader_enter(r, JOBQ__FRAME_MAP, count, at);
}

static int take_value(jobq_reader *r, jobq_token *t)
{
    text_value text = {0};
    size_t at;
    int rc;

    skip_blanks(r);
    at = r->at;
    if (at == r->n)
        return jobq__json_truncated(r, "a value is missing");
    switch (r->p[at]) {
    case '{':
        return take_object(r, t, at);
    case '[':
        r->at++;
        t->kind = JOBQ_LIST;
        t->as.count = next_count(r);
        return jobq__reader_enter(r, JOBQ__FRAME_LIST, t->as.count, at);
    case '"':
        rc = read_string(r, &r->scratch, &text);
        t->kind = JOBQ_STR;
        t->as.text.p = text.p;
        t->as.text.n = text.n;
        return rc;
    default:
        return r->p[at] == '-' || (r->p[at] >= '0' && r->p[at] <= '9') ? take_number(r, t)
                                                                       : take_word(r, t);
    }
}

/* ---- keys and separators --------------------------------------------------------------------- */

/* "[" of a pair with exactly two entries, after "]," of the one before. */
static int begin_pair(jobq_reader *r, bool first)
{
    int rc = first ? 0 : expect(r, ']', "a \"$map\" pair has a key and a value");
    size_t at;

    if (rc == 0 && !first)
        rc = expect(r, ',', "a ',' is missing between two pairs");
    skip_blanks(r);
    at = r->at;
    if (rc == 0)
        rc = expect(r, '[', "\"$map\" needs a list of [key, value] pairs");
    if (rc == 0 && next_count(r) != 2)
        return jobq__json_malformed(r, at, "a \"$map\" pair has a key and a value");
    return rc;
}

static int take_key(jobq_reader *r, jobq__frame *f, jobq_token *t)
{
    text_value text = {0};
    size_t at;
    int rc = 0;

    if (f->kind == JOBQ__FRAME_PAIRS)
        rc = begin_pair(r, !f->begun);
    else if (f->begun)
        rc = expect(r, ',', "a ',' is missing between two values");
    if (rc < 0)
        return rc;
    skip_blanks(r);
    at = r->at;
    if (f->kind == JOBQ__FRAME_PAIRS && at < r->n && r->p[at] != '"') {
        rc = r->p[at] == '[' || r->p[at] == '{'
                 ? jobq__json_malformed(r, at, "a map's key is neither a string nor an integer")
                 : take_value(r, t);
    } else {
        rc = expect_string(r, &r->held, &text, "an object's key must be a string");
        t->kind = JOBQ_STR;
        t->as.text.p = text.p;
        t->as.text.n = text.n;
    }
    return rc < 0 ? rc : jobq__reader_key(r, t, text.base, text.offset, at);
}

static int take_item(jobq_reader *r, jobq__frame *f, jobq_token *t)
{
    int rc = 0;

    if (f->kind == JOBQ__FRAME_MAP)
        rc = expect(r, ':', "a ':' is missing behind an object's key");
    else if (f->kind == JOBQ__FRAME_PAIRS || f->begun)
        rc = expect(r, ',', "a ',' is missing between two values");
    return rc < 0 ? rc : take_value(r, t);
}

static int leave_container(jobq_reader *r, const jobq__frame *f)
{
    int rc = 0;

    if (f->kind == JOBQ__FRAME_PAIRS && f->begun)
        rc = expect(r, ']', "a \"$map\" pair has a key and a value");
    if (rc == 0)
        rc = expect(r, f->kind == JOBQ__FRAME_MAP ? '}' : ']',
                    "a ',' or closing bracket is missing");
    if (rc == 0 && f->kind == JOBQ__FRAME_PAIRS)
        rc = expect(r, '}', "a '}' is missing");
    if (rc == 0)
        jobq__reader_leave(r);
    return rc;
}

static int finish(jobq_reader *r)
{
    skip_blanks(r);
    if (r->at < r->n)
        return jobq__reader_fail(r, JOBQ_PROBLEM_TRAILING, r->at, "text follows the value");
    return 0;
}

/* The token of the innermost container, whose frame moves on before another may be opened in it. */
static int next_inside(jobq_reader *r, jobq__frame *f, jobq_token *t)
{
    bool key = jobq__frame_wants_key(f);
    int rc;

    rc = key ? take_key(r, f, t) : take_item(r, f, t);
    f->left--;
    f->begun = true;
    return rc;
}

int jobq__json_next(jobq_reader *r, jobq_token *token)
{
    jobq_token t = {0};
    int rc = r->begun ? 0 : jobq__json_count(r);

    jobq__buf_reset(&r->scratch);
    while (rc == 0 && r->depth && r->frames[r->depth - 1].left == 0)
        rc = leave_container(r, &r->frames[r->depth - 1]);
    if (rc == 0 && r->depth == 0 && r->begun)
        return finish(r);
    if (rc == 0)
        rc = r->depth ? next_inside(r, &r->frames[r->depth - 1], &t) : take_value(r, &t);
    if (rc < 0)
        return rc;
    r->begun = true;
    *token = t;
    return 1;
}
