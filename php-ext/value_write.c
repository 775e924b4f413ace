/* SPDX-License-Identifier: MIT
 *
 * PHP values to payload (rules A3 and A4), straight into the library's writer. References are
 * flattened; what cannot travel is refused with the path to it. Runs no user code.
 */
#include "php_jobqueue.h"

#include <ext/date/php_date.h>
#include <zend_closures.h>
#include <zend_enum.h>
#include <zend_smart_str.h>

#include <errno.h>

/* Where we are: a chain on the C stack, made into text only when something is refused. */
typedef struct path {
    const struct path *up;
    zend_string *key; /* NULL: index */
    zend_long index;
    unsigned depth; /* containers round this value */
} path;

static zend_result write_value(jobq_writer *w, zval *value, const path *at);

/* ---- refusing -------------------------------------------------------------------------------- */

static void append_key(smart_str *out, const path *at)
{
    if (!at->up) {
        smart_str_appends(out, "payload");
        return;
    }
    append_key(out, at->up);
    smart_str_appendc(out, '.');
    if (!at->key) {
        smart_str_append_long(out, at->index);
    } else if (php_jobq_is_utf8(ZSTR_VAL(at->key), ZSTR_LEN(at->key))) {
        for (size_t i = 0; i < ZSTR_LEN(at->key) && i < 200; i++) {
            char c = ZSTR_VAL(at->key)[i];
            smart_str_appendc(out, (unsigned char)c < ' ' || c == 127 ? '?' : c);
        }
    } else {
        smart_str_appendc(out, '?');
    }
}

static zend_result refuse(const path *at, const char *what)
{
    smart_str text = {0};
    append_key(&text, at);
    smart_str_0(&text);
    php_jobq_throw_payload(text.s, "%s: %s", ZSTR_VAL(text.s), what);
    smart_str_free(&text);
    return FAILURE;
}

static zend_result refuse_named(const path *at, const char *before, const char *name,
                                const char *behind)
{
    zend_string *text = strpprintf(0, "%s%s%s", before, name, behind);
    zend_result result = refuse(at, ZSTR_VAL(text));
    zend_string_release(text);
    return result;
}

static inline zend_result check(int rc, const path *at)
{
    static const char prefix[] = "payload: "; /* the path says it, too */
    if (EXPECTED(rc >= 0)) {
        return SUCCESS;
    }
    const char *text = jobq_error_message(jobq_error_last());
    return refuse(at, text + (strncmp(text, prefix, sizeof(prefix) - 1) == 0) * strlen(prefix));
}

/* ---- text ------------------------------------------------------------------------------------ */

/* Length of the UTF-8 sequence at p, 0 when it is none: no overlong forms, no surrogates. */
static size_t sequence(const unsigned char *p, size_t n)
{
    static const struct {
        unsigned char mask, lead;
        uint32_t least;
    } forms[] = {{0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};
    for (size_t f = 0; f < 3; f++) {
        if ((p[0] & forms[f].mask) != forms[f].lead || n < f + 2) {
            continue;
        }
        uint32_t c = p[0] & (unsigned char)~forms[f].mask;
        for (size_t i = 1; i < f + 2; i++) {
            if ((p[i] & 0xc0) != 0x80) {
                return 0;
            }
            c = c << 6 | (p[i] & 0x3f);
        }
        return c < forms[f].least || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff) ? 0 : f + 2;
    }
    return 0;
}

bool php_jobq_is_utf8(const char *text, size_t n)
{
    const unsigned char *p = (const unsigned char *)text;
    while (n > 0) {
        uint64_t eight;
        if (n >= 8 && (memcpy(&eight, p, 8), (eight & UINT64_C(0x8080808080808080)) == 0)) {
            p += 8;
            n -= 8;
            continue;
        }
        size_t step = *p < 0x80 ? 1 : sequence(p, n);
        if (step == 0) {
            return false;
        }
        p += step;
        n -= step;
    }
    return true;
}

static zend_result write_string(jobq_writer *w, zend_string *text, const path *at)
{
    if (php_jobq_is_utf8(ZSTR_VAL(text), ZSTR_LEN(text))) {
        return check(jobq_writer_str(w, ZSTR_VAL(text), ZSTR_LEN(text)), at);
    }
    return check(jobq_writer_bytes(w, ZSTR_VAL(text), ZSTR_LEN(text)), at);
}

/* ---- containers ------------------------------------------------------------------------------ */

static zend_result write_key(jobq_writer *w, zend_string *key, zend_ulong index, const path *at)
{
    if (!key) {
        return check(jobq_writer_int(w, (zend_long)index), at);
    }
    if (!php_jobq_is_utf8(ZSTR_VAL(key), ZSTR_LEN(key))) {
        return refuse(at, "a key that is not UTF-8 cannot be queued");
    }
    return check(jobq_writer_str(w, ZSTR_VAL(key), ZSTR_LEN(key)), at);
}

static zend_result write_list(jobq_writer *w, HashTable *table, const path *at)
{
    zval *value;
    path inner = {at, NULL, 0, at->depth + 1};
    if (check(jobq_writer_list(w, zend_hash_num_elements(table)), at) == FAILURE) {
        return FAILURE;
    }
    ZEND_HASH_FOREACH_VAL (table, value) {
        if (write_value(w, value, &inner) == FAILURE) {
            return FAILURE;
        }
        inner.index++;
    }
    ZEND_HASH_FOREACH_END();
    return SUCCESS;
}

static uint32_t count_values(HashTable *table)
{
    zval *value;
    uint32_t n = 0;
    ZEND_HASH_FOREACH_VAL_IND (table, value) {
        (void)value;
        n++;
    }
    ZEND_HASH_FOREACH_END();
    return n;
}

static zend_result write_map(jobq_writer *w, HashTable *table, const path *at)
{
    zval *value;
    zend_string *key;
    zend_ulong index;
    if (check(jobq_writer_map(w, count_values(table)), at) == FAILURE) {
        return FAILURE;
    }
    ZEND_HASH_FOREACH_KEY_VAL_IND (table, index, key, value) {
        path inner = {at, key, (zend_long)index, at->depth + 1};
        if (write_key(w, key, index, &inner) == FAILURE ||
            write_value(w, value, &inner) == FAILURE) {
            return FAILURE;
        }
    }
    ZEND_HASH_FOREACH_END();
    return SUCCESS;
}

static zend_result write_array(jobq_writer *w, HashTable *table, bool object, const path *at)
{
    if (at->depth >= JOBQ_MAX_DEPTH) {
        return refuse(at, "more than 64 containers inside one another cannot be queued");
    }
    if (GC_IS_RECURSIVE(table)) {
        return refuse(at, "recursion cannot be queued");
    }
    GC_TRY_PROTECT_RECURSION(table);
    zend_result result =
        !object && zend_array_is_list(table) ? write_list(w, table, at) : write_map(w, table, at);
    GC_TRY_UNPROTECT_RECURSION(table);
    return result;
}

/* ---- objects --------------------------------------------------------------------------------- */

bool php_jobq_time_read(zval *object, int64_t *seconds_out, uint32_t *microseconds_out)
{
    const php_date_obj *date = Z_PHPDATE_P(object);
    if (!date->time) {
        return false;
    }
    *seconds_out = date->time->sse;
    *microseconds_out = (uint32_t)date->time->us;
    return true;
}

static zend_result write_time(jobq_writer *w, zval *object, const path *at)
{
    int64_t seconds;
    uint32_t microseconds;
    if (!php_jobq_time_read(object, &seconds, &microseconds)) {
        return refuse(at, "a date whose constructor was not called cannot be queued");
    }
    return check(jobq_writer_time(w, seconds, microseconds * 1000), at);
}

static zend_result write_bigint(jobq_writer *w, zend_object *object, const path *at)
{
    zval *value = OBJ_PROP_NUM(object, 0);
    if (Z_TYPE_P(value) != IS_STRING) {
        return refuse(at, "a BigInt without a value cannot be queued");
    }
    const char *text = Z_STRVAL_P(value);
    if (!php_jobq_is_decimal(text, Z_STRLEN_P(value))) { /* unserialize() makes such ones */
        return refuse(at, "a BigInt that holds no decimal digits cannot be queued");
    }
    errno = 0;
    if (*text == '-') {
        long long number = strtoll(text, NULL, 10);
        return errno
                   ? refuse_named(at, "the integer ", text, " is below -2^63 and cannot be queued")
                   : check(jobq_writer_int(w, number), at);
    }
    unsigned long long number = strtoull(text, NULL, 10);
    return errno ? refuse_named(at, "the integer ", text, " is above 2^64-1 and cannot be queued")
                 : check(jobq_writer_uint(w, number), at);
}

static zend_result write_enum(jobq_writer *w, zend_object *object, const path *at)
{
    if (object->ce->enum_backing_type == IS_UNDEF) {
        return refuse_named(at, "a case of ", ZSTR_VAL(object->ce->name),
                            ", an enum without values, cannot be queued");
    }
    return write_value(w, zend_enum_fetch_case_value(object), at);
}

static zend_result write_std_class(jobq_writer *w, zend_object *object, const path *at)
{
    if (GC_IS_RECURSIVE(object)) {
        return refuse(at, "recursion cannot be queued");
    }
    GC_PROTECT_RECURSION(object);
    zend_result result = write_array(w, zend_std_get_properties(object), true, at);
    GC_UNPROTECT_RECURSION(object);
    return result;
}

static zend_result write_object(jobq_writer *w, zval *value, const path *at)
{
    zend_object *object = Z_OBJ_P(value);
    zend_class_entry *ce = object->ce;
    if (ce == zend_standard_class_def) {
        return write_std_class(w, object, at);
    }
    if (ce == php_jobq_ce_bigint) {
        return write_bigint(w, object, at);
    }
    if (ce == php_jobq_ce_bytes && Z_TYPE_P(OBJ_PROP_NUM(object, 0)) == IS_STRING) {
        zend_string *bytes = Z_STR_P(OBJ_PROP_NUM(object, 0));
        return check(jobq_writer_bytes(w, ZSTR_VAL(bytes), ZSTR_LEN(bytes)), at);
    }
    if (ce->ce_flags & ZEND_ACC_ENUM) {
        return write_enum(w, object, at);
    }
    if (instanceof_function(ce, php_date_get_interface_ce())) {
        return write_time(w, value, at);
    }
    if (ce == zend_ce_closure) {
        return refuse(at, "a Closure cannot be queued");
    }
    return refuse_named(at, "an object of class ", ZSTR_VAL(ce->name), " cannot be queued");
}

static zend_result write_value(jobq_writer *w, zval *value, const path *at)
{
    ZVAL_DEREF(value);
    switch (Z_TYPE_P(value)) {
    case IS_UNDEF:
    case IS_NULL:
        return check(jobq_writer_nil(w), at);
    case IS_FALSE:
    case IS_TRUE:
        return check(jobq_writer_bool(w, Z_TYPE_P(value) == IS_TRUE), at);
    case IS_LONG:
        return check(jobq_writer_int(w, Z_LVAL_P(value)), at);
    case IS_DOUBLE:
        return check(jobq_writer_double(w, Z_DVAL_P(value)), at);
    case IS_STRING:
        return write_string(w, Z_STR_P(value), at);
    case IS_ARRAY:
        return write_array(w, Z_ARRVAL_P(value), false, at);
    case IS_OBJECT:
        return write_object(w, value, at);
    case IS_RESOURCE:
        return refuse(at, "a resource cannot be queued");
    default:
        return refuse(at, "a value of this kind cannot be queued");
    }
}

zend_result php_jobq_encode(jobq_writer *w, zval *value)
{
    path top = {NULL, NULL, 0, 0};
    return write_value(w, value, &top);
}

zend_result php_jobq_encode_member(jobq_writer *w, zend_string *key, zval *value)
{
    path top = {NULL, NULL, 0, 0};
    path inner = {&top, key, 0, 1};
    return write_key(w, key, 0, &inner) == FAILURE ? FAILURE : write_value(w, value, &inner);
}
