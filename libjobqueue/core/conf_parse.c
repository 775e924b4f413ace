/* SPDX-License-Identifier: MIT
 *
 * Values of options: one small reader per type, found through a table. Strict everywhere: what is
 * not wholly of the form is refused, never rounded into a default.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/conf_table.h"
#include "payload/json_text.h"
#include "util/error.h"
#include "util/str.h"

/* 9999-12-31T23:59:59Z */
static const int64_t last_second = 253402300799;

typedef struct {
    const jobq__option *o;
    void *field;
    jobq__arena *texts;
} target;

static void *field_of(const jobq__option *o, jobq__settings *s)
{
    return (char *)s + o->offset;
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* The lower end of a range. Leases under a second exist for tests only. */
static double lowest(const jobq__option *o)
{
    if (o->offset == offsetof(jobq__settings, lease_ms) && getenv("JOBQUEUE_TEST_SHORT_LEASE"))
        return 0.1;
    return o->min;
}

static bool in_range(const jobq__option *o, double value)
{
    return value >= lowest(o) && value <= o->max;
}

/* Seconds to milliseconds; a span above zero never becomes zero, which would mean "off". */
static int64_t to_ms(double seconds)
{
    int64_t ms = (int64_t)llround(seconds * 1000);

    return ms == 0 && seconds > 0 ? 1 : ms;
}

static int put_whole(const target *t, double value)
{
    if (!in_range(t->o, value) || value != floor(value))
        return JOBQ_EINVAL;
    *(int64_t *)t->field = (int64_t)value;
    return 0;
}

static int put_seconds(const target *t, double value)
{
    if (!in_range(t->o, value))
        return JOBQ_EINVAL;
    *(int64_t *)t->field = to_ms(value);
    return 0;
}

static int put_double(const target *t, double value)
{
    if (!in_range(t->o, value))
        return JOBQ_EINVAL;
    *(double *)t->field = value;
    return 0;
}

static int put_relative(const target *t, double value)
{
    if (!(value > 0 && value <= JOBQ__TEN_YEARS_S))
        return JOBQ_EINVAL;
    *(jobq__moment *)t->field = (jobq__moment){true, true, to_ms(value)};
    return 0;
}

/* 0 stands for "not given", so an instant that is 1970 or earlier becomes the first millisecond:
 * past anyway. */
static int put_epoch(const target *t, double value)
{
    if (!(fabs(value) <= (double)last_second))
        return JOBQ_EINVAL;
    *(int64_t *)t->field = value <= 0 ? 1 : to_ms(value);
    return 0;
}

static int put_single_backoff(const target *t, double value)
{
    if (!(value >= 0 && value <= JOBQ__TEN_YEARS_S))
        return JOBQ_EINVAL;
    *(jobq__backoff *)t->field = (jobq__backoff){.count = 1, .list_ms = {to_ms(value)}};
    return 0;
}

/* ---- texts ----------------------------------------------------------------------------------- */

static int find_word(const char *const *words, const char *p, size_t n)
{
    for (int i = 0; words[i]; i++)
        if (strlen(words[i]) == n && memcmp(words[i], p, n) == 0)
            return i;
    return -1;
}

static int read_bool(const target *t, const char *p, size_t n)
{
    static const char *const words[] = {"false", "true", "0", "1", "no", "yes", "off", "on", NULL};
    int i = find_word(words, p, n);

    if (i < 0)
        return JOBQ_EINVAL;
    *(bool *)t->field = i & 1;
    return 0;
}

static int read_int(const target *t, const char *p, size_t n)
{
    int64_t value;

    if (t->o->words && find_word(t->o->words, p, n) == 0) {
        *(int64_t *)t->field = -1;
        return 0;
    }
    return jobq__str_int(p, n, &value) ? put_whole(t, (double)value) : JOBQ_EINVAL;
}

static int read_seconds(const target *t, const char *p, size_t n)
{
    double value;

    return jobq__str_double(p, n, &value) ? put_seconds(t, value) : JOBQ_EINVAL;
}

static int read_double(const target *t, const char *p, size_t n)
{
    double value;

    return jobq__str_double(p, n, &value) ? put_double(t, value) : JOBQ_EINVAL;
}

/* Texts carry their capacity in front, so that setting one again and again needs no new memory. */
static char *keep_text(jobq__arena *texts, char *old, const char *p, size_t n)
{
    enum { HEAD = 16 };
    size_t cap = 0;
    char *base;

    if (old)
        memcpy(&cap, old - HEAD, sizeof(cap));
    if (cap <= n) {
        cap = (n + 1 + HEAD) * 2;
        base = jobq__arena_alloc(texts, HEAD + cap);
        if (!base)
            return NULL;
        memcpy(base, &cap, sizeof(cap));
        old = base + HEAD;
    }
    memcpy(old, p, n);
    old[n] = '\0';
    return old;
}

static int read_text(const target *t, const char *p, size_t n)
{
    char *text;
    int rc = t->o->check ? t->o->check(p, n) : 0;

    if (rc < 0)
        return rc;
    text = keep_text(t->texts, *(char **)t->field, p, n);
    if (!text)
        return jobq__error_nomem();
    *(char **)t->field = text;
    return 0;
}

static int read_word(const target *t, const char *p, size_t n)
{
    return find_word(t->o->words, p, n) < 0 ? JOBQ_EINVAL : read_text(t, p, n);
}

static int read_enum(const target *t, const char *p, size_t n)
{
    int i = find_word(t->o->words, p, n);

    if (i < 0)
        return JOBQ_EINVAL;
    *(int *)t->field = i;
    return 0;
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* Takes the next element of a comma separated list; false when none is left. */
static bool next_element(const char **p, size_t *n, const char **element, size_t *element_n)
{
    const char *comma;

    if (!*p)
        return false;
    comma = *n ? memchr(*p, ',', *n) : NULL;
    *element = *p;
    *element_n = comma ? (size_t)(comma - *p) : *n;
    *n -= comma ? *element_n + 1 : *n;
    *p = comma ? comma + 1 : NULL;
    return true;
}

static int add_backoff(jobq__backoff *b, const char *p, size_t n)
{
    double value;

    if (!jobq__str_double(p, n, &value) || !(value >= 0 && value <= JOBQ__TEN_YEARS_S) ||
        b->count == JOBQ__BACKOFF_MAX)
        return JOBQ_EINVAL;
    b->list_ms[b->count++] = to_ms(value);
    return 0;
}

static int read_backoff(const target *t, const char *p, size_t n)
{
    static const char prefix[] = "exponential:";
    jobq__backoff b = {0};
    const char *element;
    size_t element_n;

    if (n > sizeof(prefix) - 1 && memcmp(p, prefix, sizeof(prefix) - 1) == 0) {
        b.exponential = true;
        p += sizeof(prefix) - 1;
        n -= sizeof(prefix) - 1;
    }
    while (next_element(&p, &n, &element, &element_n))
        if (add_backoff(&b, element, element_n) < 0)
            return JOBQ_EINVAL;
    if (b.exponential && (b.count != 2 || b.list_ms[0] == 0 || b.list_ms[1] < b.list_ms[0]))
        return JOBQ_EINVAL;
    if (b.exponential)
        b.count = 0;
    *(jobq__backoff *)t->field = b;
    return 0;
}

static int add_name(jobq__names *list, jobq__arena *texts, const char *p, size_t n)
{
    char **names;
    char *name;

    if (n == 0 || n > 1024 || !jobq__utf8_valid(p, n) || memchr(p, '\0', n))
        return JOBQ_EINVAL;
    names = jobq__arena_alloc(texts, (list->count + 1) * sizeof(*names));
    name = names ? jobq__arena_copy(texts, p, n) : NULL;
    if (!name)
        return jobq__error_nomem();
    if (list->count)
        memcpy(names, list->names, list->count * sizeof(*names));
    names[list->count] = name;
    list->names = names;
    list->count++;
    return 0;
}

static int read_names(const target *t, const char *p, size_t n)
{
    jobq__names list = {0};
    const char *element;
    size_t element_n;
    int rc;

    while (next_element(&p, &n, &element, &element_n))
        if ((rc = add_name(&list, t->texts, element, element_n)) < 0)
            return rc;
    *(jobq__names *)t->field = list;
    return 0;
}

/* ---- instants -------------------------------------------------------------------------------- */

/* "2026-11-30T10:00:00Z" with any offset, or "@1780000000.5": seconds since 1970. */
static bool parse_time(const char *p, size_t n, int64_t *ms_out)
{
    int64_t seconds;
    uint32_t nanoseconds = 0;
    double given;

    if (n > 1 && p[0] == '@') {
        if (!jobq__str_double(p + 1, n - 1, &given) || fabs(given) > (double)last_second)
            return false;
        *ms_out = (int64_t)llround(given * 1000);
        return true;
    }
    if (!jobq__rfc3339_parse(p, n, &seconds, &nanoseconds) || seconds > last_second ||
        seconds < -last_second)
        return false;
    *ms_out = seconds * 1000 + nanoseconds / 1000000;
    return true;
}

static int read_time(const target *t, const char *p, size_t n)
{
    int64_t ms;

    if (!parse_time(p, n, &ms))
        return JOBQ_EINVAL;
    *(int64_t *)t->field = ms <= 0 ? 1 : ms;
    return 0;
}

static int read_moment(const target *t, const char *p, size_t n)
{
    int64_t ms;
    double seconds;

    if (jobq__str_double(p, n, &seconds))
        return put_relative(t, seconds);
    if (!parse_time(p, n, &ms))
        return JOBQ_EINVAL;
    *(jobq__moment *)t->field = (jobq__moment){true, false, ms <= 0 ? 1 : ms};
    return 0;
}

/* ---- the table of types ---------------------------------------------------------------------- */

static const struct {
    int (*read)(const target *t, const char *p, size_t n);
    int (*number)(const target *t, double value); /* NULL: a number is no value of it */
    size_t size;
} types[JOBQ__TYPES] = {
    [JOBQ__TYPE_BOOL] = {read_bool, NULL, sizeof(bool)},
    [JOBQ__TYPE_INT] = {read_int, put_whole, sizeof(int64_t)},
    [JOBQ__TYPE_BYTES] = {read_int, put_whole, sizeof(int64_t)},
    [JOBQ__TYPE_MEGABYTES] = {read_int, put_whole, sizeof(int64_t)},
    [JOBQ__TYPE_SECONDS] = {read_seconds, put_seconds, sizeof(int64_t)},
    [JOBQ__TYPE_NUMBER] = {read_double, put_double, sizeof(double)},
    [JOBQ__TYPE_TEXT] = {read_text, NULL, sizeof(char *)},
    [JOBQ__TYPE_WORD] = {read_word, NULL, sizeof(char *)},
    [JOBQ__TYPE_ENUM] = {read_enum, NULL, sizeof(int)},
    [JOBQ__TYPE_BACKOFF] = {read_backoff, put_single_backoff, sizeof(jobq__backoff)},
    [JOBQ__TYPE_NAMES] = {read_names, NULL, sizeof(jobq__names)},
    [JOBQ__TYPE_MOMENT] = {read_moment, put_relative, sizeof(jobq__moment)},
    [JOBQ__TYPE_TIME] = {read_time, put_epoch, sizeof(int64_t)},
};

int jobq__option_parse(const jobq__option *o, jobq__settings *s, jobq__arena *texts, const char *p,
                       size_t n)
{
    target t = {o, field_of(o, s), texts};

    return types[o->type].read(&t, p, n);
}

int jobq__option_number(const jobq__option *o, jobq__settings *s, double value)
{
    target t = {o, field_of(o, s), NULL};

    return types[o->type].number ? types[o->type].number(&t, value) : JOBQ_EINVAL;
}

int jobq__option_append(const jobq__option *o, jobq__settings *s, jobq__arena *texts, const char *p,
                        size_t n)
{
    if (o->type == JOBQ__TYPE_BACKOFF) {
        jobq__backoff *b = field_of(o, s);

        return b->exponential ? JOBQ_EINVAL : add_backoff(b, p, n);
    }
    if (o->type == JOBQ__TYPE_NAMES)
        return add_name(field_of(o, s), texts, p, n);
    return JOBQ_EINVAL;
}

void jobq__option_restore(const jobq__option *o, jobq__settings *s, const jobq__settings *defaults)
{
    memcpy(field_of(o, s), (const char *)defaults + o->offset, types[o->type].size);
}

static int copy_names(jobq__names *to, jobq__arena *texts, const jobq__names *from)
{
    jobq__names list = {0};

    for (size_t i = 0; i < from->count; i++)
        if (add_name(&list, texts, from->names[i], strlen(from->names[i])) < 0)
            return JOBQ_ENOMEM;
    *to = list;
    return 0;
}

int jobq__option_copy(const jobq__option *o, jobq__settings *to, jobq__arena *texts,
                      const jobq__settings *from)
{
    const void *source = (const char *)from + o->offset;
    void *field = field_of(o, to);

    if (o->type == JOBQ__TYPE_NAMES)
        return copy_names(field, texts, source);
    if (o->type == JOBQ__TYPE_TEXT || o->type == JOBQ__TYPE_WORD) {
        const char *text = *(char *const *)source;
        char *copy = keep_text(texts, *(char **)field, text, strlen(text));

        if (!copy)
            return jobq__error_nomem();
        *(char **)field = copy;
        return 0;
    }
    memcpy(field, source, types[o->type].size);
    return 0;
}
