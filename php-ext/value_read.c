/* SPDX-License-Identifier: MIT
 *
 * Payload to PHP values (rule A3), built directly from the reader's tokens. Nothing here throws or
 * runs user code: an unreadable body is an error code.
 *
 * A PHP array cannot hold the string key "123": it becomes the integer 123, as everywhere in PHP.
 */
#include "php_jobqueue.h"

#include <ext/date/php_date.h>

typedef struct {
    jobq_reader *reader;
    size_t bytes; /* of the whole body: no array begins larger than that */
    bool objects; /* maps become stdClass */
} decoder;

static int read_value(decoder *d, const jobq_token *token, zval *out);

/* ---- dates, large integers ------------------------------------------------------------------- */

/* "2026-11-30 10:00:01.000250 UTC"; beyond the years 1 to 9999 "@seconds.microseconds". */
static size_t format_time(char *out, size_t size, int64_t seconds, uint32_t microseconds)
{
    struct tm tm;
    time_t when = (time_t)seconds;
    if (php_gmtime_r(&when, &tm) && tm.tm_year >= 1 - 1900 && tm.tm_year <= 9999 - 1900) {
        return (size_t)snprintf(out, size, "%04d-%02d-%02d %02d:%02d:%02d.%06u UTC",
                                tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min,
                                tm.tm_sec, microseconds);
    }
    if (seconds < 0 && microseconds > 0) {
        seconds++;
        microseconds = 1000000 - microseconds;
    }
    return (size_t)snprintf(out, size, "@" ZEND_LONG_FMT ".%06u", (zend_long)seconds, microseconds);
}

void php_jobq_time_make(zval *out, int64_t seconds, uint32_t microseconds)
{
    char text[64];
    size_t n = format_time(text, sizeof(text), seconds, microseconds);
    php_date_instantiate(php_date_get_immutable_ce(), out);
    php_date_initialize(Z_PHPDATE_P(out), text, n, NULL, NULL, 0);
}

void php_jobq_time_from_ms(zval *out, int64_t ms)
{
    if (ms == 0) {
        ZVAL_NULL(out);
        return;
    }
    int64_t seconds = ms / 1000 - (ms % 1000 < 0);
    php_jobq_time_make(out, seconds, (uint32_t)(ms - seconds * 1000) * 1000);
}

void php_jobq_bigint_make(zval *out, uint64_t value)
{
    zval text;
    object_init_ex(out, php_jobq_ce_bigint);
    ZVAL_STR(&text, zend_u64_to_str(value));
    php_jobq_init_property(Z_OBJ_P(out), 0, &text);
}

/* ---- containers ------------------------------------------------------------------------------ */

/* Some builds of PHP only note that memory_limit was passed and act on it at the next opcode (or
 * end the process at twice of it): reading stops here instead. */
static bool is_over_limit(void)
{
    return PG(memory_limit) > 0 && zend_memory_usage(false) > (size_t)PG(memory_limit);
}

static int next_token(decoder *d, jobq_token *token)
{
    if (UNEXPECTED(zend_atomic_bool_load_ex(&EG(vm_interrupt))) && is_over_limit()) {
        return JOBQ_ENOMEM;
    }
    int rc = jobq_reader_next(d->reader, token);
    return rc == 0 ? JOBQ_EPAYLOAD : rc;
}

/* Room to begin with. A large array grows in steps, so that one which exceeds memory_limit meets it
 * on the way. */
static uint32_t bounded(const decoder *d, size_t count)
{
    const size_t most = d->bytes < 65536 ? d->bytes : 65536;
    return (uint32_t)(count < most ? count : most);
}

static int read_list(decoder *d, size_t count, zval *out)
{
    array_init_size(out, bounded(d, count));
    zend_hash_real_init_packed(Z_ARRVAL_P(out));
    for (size_t i = 0; i < count; i++) {
        jobq_token token;
        zval value;
        int rc = next_token(d, &token);
        if (rc < 0) {
            return rc;
        }
        ZVAL_NULL(&value);
        rc = read_value(d, &token, &value);
        zend_hash_next_index_insert_new(Z_ARRVAL_P(out), &value);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

static void put(decoder *d, HashTable *table, const jobq_token *key, zval *value)
{
    zend_string *text;
    if (key->kind == JOBQ_STR && !d->objects) {
        zend_symtable_str_update(table, key->as.text.p, key->as.text.n, value);
        return;
    }
    if (key->kind == JOBQ_INT && !d->objects) {
        zend_hash_index_update(table, (zend_ulong)key->as.integer, value);
        return;
    }
    if (key->kind == JOBQ_STR) {
        text = zend_string_init(key->as.text.p, key->as.text.n, 0);
    } else {
        text = key->kind == JOBQ_INT ? zend_long_to_str((zend_long)key->as.integer)
                                     : zend_u64_to_str(key->as.unsigned_integer);
    }
    zend_hash_update(table, text, value);
    zend_string_release(text);
}

static HashTable *make_table(decoder *d, size_t count, zval *out)
{
    if (d->objects) {
        object_init(out);
        return zend_std_get_properties(Z_OBJ_P(out));
    }
    array_init_size(out, bounded(d, count));
    return Z_ARRVAL_P(out);
}

static int read_map(decoder *d, size_t count, zval *out)
{
    HashTable *table = make_table(d, count, out);
    for (size_t i = 0; i < count; i++) {
        jobq_token key, token;
        zval value;
        int rc = next_token(d, &key);
        char held[256];
        if (rc < 0) {
            return rc;
        }
        /* the reader's text is borrowed until its next call; short keys need no string of their own
         */
        zend_string *long_key = NULL;
        if (key.kind == JOBQ_STR && key.as.text.n > sizeof(held)) {
            long_key = zend_string_init(key.as.text.p, key.as.text.n, 0);
            key.as.text.p = ZSTR_VAL(long_key);
        } else if (key.kind == JOBQ_STR && key.as.text.n > 0) {
            key.as.text.p = memcpy(held, key.as.text.p, key.as.text.n);
        }
        ZVAL_NULL(&value);
        rc = next_token(d, &token);
        if (rc >= 0) {
            rc = read_value(d, &token, &value);
        }
        put(d, table, &key, &value);
        if (long_key) {
            zend_string_release(long_key);
        }
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

static int read_value(decoder *d, const jobq_token *token, zval *out)
{
    switch (token->kind) {
    case JOBQ_NIL:
        ZVAL_NULL(out);
        return 0;
    case JOBQ_BOOL:
        ZVAL_BOOL(out, token->as.boolean);
        return 0;
    case JOBQ_INT:
        ZVAL_LONG(out, (zend_long)token->as.integer);
        return 0;
    case JOBQ_UINT:
        php_jobq_bigint_make(out, token->as.unsigned_integer);
        return 0;
    case JOBQ_DOUBLE:
        ZVAL_DOUBLE(out, token->as.number);
        return 0;
    case JOBQ_STR:
    case JOBQ_BYTES:
        ZVAL_STRINGL_FAST(out, token->as.text.n ? token->as.text.p : "", token->as.text.n);
        return 0;
    case JOBQ_TIME:
        php_jobq_time_make(out, token->as.time.seconds, token->as.time.nanoseconds / 1000);
        return 0;
    case JOBQ_LIST:
        return read_list(d, token->as.count, out);
    case JOBQ_MAP:
        return read_map(d, token->as.count, out);
    }
    return JOBQ_EPAYLOAD;
}

int php_jobq_decode(int format, const void *p, size_t n, bool maps_as_objects, zval *out)
{
    jobq_token token;
    if (!JQG(reader) && !(JQG(reader) = jobq_reader_new())) {
        return JOBQ_ENOMEM;
    }
    decoder d = {JQG(reader), n, maps_as_objects};
    ZVAL_NULL(out);
    jobq_reader_open(d.reader, format, p, n);
    int rc = next_token(&d, &token);
    if (rc >= 0) {
        rc = read_value(&d, &token, out);
    }
    if (rc >= 0) {
        rc = jobq_reader_next(d.reader, &token); /* 0: read whole, nothing trails */
    }
    if (rc < 0) {
        const bool over = rc == JOBQ_ENOMEM && is_over_limit();
        zval_ptr_dtor(out);
        ZVAL_NULL(out);
        if (over) {
            zend_error_noreturn(
                E_ERROR, "Allowed memory size of " ZEND_LONG_FMT " bytes exhausted (by a payload)",
                PG(memory_limit));
        }
    }
    return rc;
}
