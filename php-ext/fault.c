/* SPDX-License-Identifier: MIT
 *
 * Exceptions as error records (rule F5): class, message, file:line and a trace without argument
 * values, read from the exception's own properties. Runs no user code and cannot fail.
 */
#include "php_jobqueue.h"

#include <zend_smart_str.h>

enum { TRACE_MAX = 60 * 1024, CHAIN_MAX = 16 };

static zval *read_property(zend_object *exception, zend_known_string_id which, zval *rv)
{
    zend_class_entry *base =
        instanceof_function(exception->ce, zend_ce_exception) ? zend_ce_exception : zend_ce_error;
    return zend_read_property_ex(base, exception, ZSTR_KNOWN(which), true, rv);
}

static void append_text(smart_str *out, HashTable *frame, zend_known_string_id which)
{
    zval *value = zend_hash_find(frame, ZSTR_KNOWN(which));
    if (value && Z_TYPE_P(value) == IS_STRING) {
        smart_str_append(out, Z_STR_P(value));
    }
}

/* "#0 /app/mail.php(12): Mailer->send()" */
static void append_frame(smart_str *out, zend_long number, HashTable *frame)
{
    zval *line = zend_hash_find(frame, ZSTR_KNOWN(ZEND_STR_LINE));
    smart_str_appendc(out, '#');
    smart_str_append_long(out, number);
    smart_str_appendc(out, ' ');
    if (zend_hash_exists(frame, ZSTR_KNOWN(ZEND_STR_FILE))) {
        append_text(out, frame, ZEND_STR_FILE);
        smart_str_appendc(out, '(');
        smart_str_append_long(out, line && Z_TYPE_P(line) == IS_LONG ? Z_LVAL_P(line) : 0);
        smart_str_appends(out, "): ");
    } else {
        smart_str_appends(out, "[internal function]: ");
    }
    append_text(out, frame, ZEND_STR_CLASS);
    append_text(out, frame, ZEND_STR_TYPE);
    append_text(out, frame, ZEND_STR_FUNCTION);
    smart_str_appends(out, "()\n");
}

static void append_trace(smart_str *out, zend_object *exception)
{
    zval rv, *frame;
    zend_long number = 0;
    zval *trace = read_property(exception, ZEND_STR_TRACE, &rv);
    if (Z_TYPE_P(trace) == IS_ARRAY) {
        ZEND_HASH_FOREACH_VAL (Z_ARRVAL_P(trace), frame) {
            if (Z_TYPE_P(frame) == IS_ARRAY && smart_str_get_len(out) < TRACE_MAX) {
                append_frame(out, number++, Z_ARRVAL_P(frame));
            }
        }
        ZEND_HASH_FOREACH_END();
    }
    smart_str_appendc(out, '#');
    smart_str_append_long(out, number);
    smart_str_appends(out, " {main}");
}

static void append_where(smart_str *out, zend_object *exception)
{
    zval rv;
    zval *file = read_property(exception, ZEND_STR_FILE, &rv);
    if (Z_TYPE_P(file) == IS_STRING) {
        smart_str_append(out, Z_STR_P(file));
    }
    zval *line = read_property(exception, ZEND_STR_LINE, &rv);
    smart_str_appendc(out, ':');
    smart_str_append_long(out, Z_TYPE_P(line) == IS_LONG ? Z_LVAL_P(line) : 0);
}

static zend_object *previous_of(zend_object *exception)
{
    zval rv;
    zval *previous = read_property(exception, ZEND_STR_PREVIOUS, &rv);
    return Z_TYPE_P(previous) == IS_OBJECT ? Z_OBJ_P(previous) : NULL;
}

static void append_chain(smart_str *out, zend_object *exception)
{
    zval rv;
    for (int i = 0; i < CHAIN_MAX && (exception = previous_of(exception)) &&
                    smart_str_get_len(out) < TRACE_MAX;
         i++) {
        zval *message = read_property(exception, ZEND_STR_MESSAGE, &rv);
        smart_str_appends(out, "\nPrevious: ");
        smart_str_append(out, exception->ce->name);
        smart_str_appends(out, ": ");
        if (Z_TYPE_P(message) == IS_STRING) {
            smart_str_appendl(out, Z_STRVAL_P(message), MIN(Z_STRLEN_P(message), 4096));
        }
        smart_str_appends(out, " in ");
        append_where(out, exception);
        smart_str_appendc(out, '\n');
        append_trace(out, exception);
    }
}

void php_jobq_fault_set(jobq_job *job, zend_object *exception)
{
    smart_str where = {0}, trace = {0};
    zval rv;
    zval *message = read_property(exception, ZEND_STR_MESSAGE, &rv);
    append_where(&where, exception);
    append_trace(&trace, exception);
    append_chain(&trace, exception);
    smart_str_0(&where);
    smart_str_0(&trace);
    zend_string *name = exception->ce->name;
    size_t name_n =
        strlen(ZSTR_VAL(name)); /* an anonymous class's name goes on behind a NUL with a path */
    bool text = Z_TYPE_P(message) == IS_STRING;
    jobq_job_set_error(job, ZSTR_VAL(name), name_n, text ? Z_STRVAL_P(message) : "",
                       text ? Z_STRLEN_P(message) : 0, ZSTR_VAL(where.s), ZSTR_LEN(where.s),
                       ZSTR_VAL(trace.s), ZSTR_LEN(trace.s));
    smart_str_free(&where);
    smart_str_free(&trace);
}

void php_jobq_fault_text(jobq_job *job, const char *class_name, const char *text, size_t n)
{
    jobq_job_set_error(job, class_name, class_name ? strlen(class_name) : 0, text, n, NULL, 0, NULL,
                       0);
}
