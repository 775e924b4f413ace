/* SPDX-License-Identifier: MIT
 *
 * Error codes to exceptions: the one table, and the only file that throws. Usage errors are
 * \ValueError and \TypeError, everything else a QueueException with the library's stable word as
 * its errorCode.
 */
#include "php_jobqueue.h"

#include <ext/spl/spl_exceptions.h>

/* Which class stands for which code; anything not listed is a plain QueueException. */
static const struct {
    int code;
    zend_class_entry **ce;
    const char *subject; /* the property that holds what the error is about */
} error_classes[] = {
    {JOBQ_ECONNECT, &php_jobq_ce_connection, NULL},
    {JOBQ_EIO, &php_jobq_ce_connection, NULL},
    {JOBQ_ETIMEOUT, &php_jobq_ce_connection, NULL},
    {JOBQ_EBUSY, &php_jobq_ce_connection, NULL},
    {JOBQ_EPROTO, &php_jobq_ce_connection, NULL},
    {JOBQ_EINTR, &php_jobq_ce_connection, NULL},
    {JOBQ_EUNKNOWN, &php_jobq_ce_outcome_unknown, "id"},
    {JOBQ_EEXISTS, &php_jobq_ce_duplicate, "id"},
    {JOBQ_ELEASE, &php_jobq_ce_lease_lost, NULL},
    {JOBQ_EPAYLOAD, &php_jobq_ce_payload, "path"},
    {JOBQ_ELIMIT, &php_jobq_ce_payload, "path"},
    {JOBQ_ENOTFOUND, &php_jobq_ce_not_found, NULL},
    {JOBQ_EFULL, &php_jobq_ce_full, "queue"},
    {JOBQ_EGUARD, &php_jobq_ce_guard, NULL},
    {JOBQ_EDEAD, &php_jobq_ce_dead, "id"},
    {JOBQ_EPENDING, &php_jobq_ce_wait, "id"},
};

static zend_class_entry *class_of(const jobq_error *err, const char **subject_out)
{
    int code = jobq_error_code(err);
    *subject_out = NULL;
    if (code == JOBQ_EINVAL) { /* also when the store found it: a guard's SQL, a value */
        return zend_ce_value_error;
    }
    if (code == JOBQ_ECONF) {
        /* said by a store (refused password, newer schema): no mistake in the call */
        return *jobq_error_driver(err) ? php_jobq_ce_connection : zend_ce_value_error;
    }
    for (size_t i = 0; i < sizeof(error_classes) / sizeof(error_classes[0]); i++) {
        if (error_classes[i].code == code) {
            *subject_out = error_classes[i].subject;
            return *error_classes[i].ce;
        }
    }
    return php_jobq_ce_queue_exception;
}

static void set_message(zend_object *exception, zend_string *message)
{
    zval value;
    ZVAL_STR(&value, message);
    zend_update_property_ex(
        instanceof_function(exception->ce, zend_ce_exception) ? zend_ce_exception : zend_ce_error,
        exception, ZSTR_KNOWN(ZEND_STR_MESSAGE), &value);
}

static void make(zval *out, zend_class_entry *ce, zend_string *message)
{
    object_init_ex(out, ce);
    set_message(Z_OBJ_P(out), message);
}

void php_jobq_error_code(zend_object *exception, const char *word)
{
    if (instanceof_function(exception->ce, php_jobq_ce_queue_exception)) {
        zend_update_property_string(php_jobq_ce_queue_exception, exception, "errorCode",
                                    sizeof("errorCode") - 1, word);
    }
}

void php_jobq_error_make(zval *out, const jobq_error *err)
{
    const char *subject;
    err = err ? err : jobq_error_last();
    zend_class_entry *ce = class_of(err, &subject);
    const char *text = jobq_error_message(err);
    zend_string *message = zend_string_init(text, strlen(text), 0);
    make(out, ce, message);
    zend_string_release(message);
    if (ce == zend_ce_value_error) {
        return;
    }
    php_jobq_error_code(Z_OBJ_P(out), jobq_error_word(jobq_error_code(err)));
    zend_update_property_bool(php_jobq_ce_queue_exception, Z_OBJ_P(out), "retryable",
                              sizeof("retryable") - 1, jobq_error_is_retryable(err));
    if (subject) {
        const char *about = *jobq_error_subject(err) || ce != php_jobq_ce_payload
                                ? jobq_error_subject(err)
                                : "payload";
        zend_update_property_string(ce, Z_OBJ_P(out), subject, strlen(subject), about);
    }
    if (ce == php_jobq_ce_full) {
        zend_update_property_long(ce, Z_OBJ_P(out), ZEND_STRL("capacity"),
                                  (zend_long)jobq_error_native(err));
    }
}

void php_jobq_throw(const jobq_error *err)
{
    zval exception;
    if (EG(exception)) {
        return;
    }
    php_jobq_error_make(&exception, err);
    zend_throw_exception_object(&exception);
}

void php_jobq_throw_wait(int rc, const char *id, const jobq_info *info)
{
    zval exception, value;
    php_jobq_error_make(&exception, NULL);
    if (rc == JOBQ_EDEAD && info) {
        const char *reason = jobq_info_text(info, JOBQ_INFO_REASON, NULL);
        zend_update_property_string(php_jobq_ce_dead, Z_OBJ(exception), ZEND_STRL("reason"),
                                    reason ? reason : "");
        php_jobq_job_info_make(&value, info);
        zend_update_property(php_jobq_ce_dead, Z_OBJ(exception), ZEND_STRL("info"), &value);
        zval_ptr_dtor(&value);
    } else if (rc == JOBQ_ENOTFOUND) {
        array_init(&value);
        add_next_index_string(&value, id);
        zend_update_property(php_jobq_ce_not_found, Z_OBJ(exception), ZEND_STRL("ids"), &value);
        zval_ptr_dtor(&value);
    }
    zend_throw_exception_object(&exception);
}

void php_jobq_throw_last(void)
{
    php_jobq_throw(NULL);
}

static void throw_made(zend_class_entry *ce, const char *word, const char *fmt, va_list args)
{
    zval exception;
    zend_string *message = zend_vstrpprintf(0, fmt, args);
    make(&exception, ce, message);
    zend_string_release(message);
    if (word) {
        php_jobq_error_code(Z_OBJ(exception), word);
    }
    zend_throw_exception_object(&exception);
}

#define THROW(ce, word)              \
    va_list args;                    \
    va_start(args, fmt);             \
    throw_made(ce, word, fmt, args); \
    va_end(args)

void php_jobq_throw_usage(const char *fmt, ...)
{
    THROW(zend_ce_value_error, NULL);
}

void php_jobq_throw_type(const char *fmt, ...)
{
    THROW(zend_ce_type_error, NULL);
}

void php_jobq_throw_logic(const char *fmt, ...)
{
    THROW(spl_ce_LogicException, NULL);
}

void php_jobq_throw_unsupported(const char *fmt, ...)
{
    THROW(php_jobq_ce_queue_exception, jobq_error_word(JOBQ_EUNSUPPORTED));
}

void php_jobq_throw_payload(zend_string *path, const char *fmt, ...)
{
    THROW(php_jobq_ce_payload, jobq_error_word(JOBQ_EPAYLOAD));
    zval value;
    ZVAL_STR(&value, path);
    zend_update_property(php_jobq_ce_payload, EG(exception), "path", sizeof("path") - 1, &value);
}

void php_jobq_throw_not_found(zval *ids, const char *fmt, ...)
{
    THROW(php_jobq_ce_not_found, jobq_error_word(JOBQ_ENOTFOUND));
    zend_update_property(php_jobq_ce_not_found, EG(exception), "ids", sizeof("ids") - 1, ids);
}

void php_jobq_throw_duplicate(const char *id, const char *fmt, ...)
{
    THROW(php_jobq_ce_duplicate, jobq_error_word(JOBQ_EEXISTS));
    zend_update_property_string(php_jobq_ce_duplicate, EG(exception), "id", sizeof("id") - 1, id);
}

static void throw_word(zend_class_entry *ce, const char *word, const char *fmt, ...)
{
    THROW(ce, word);
}

void php_jobq_throw_interrupt(int kind, jobq_job *job)
{
    if (kind == JOBQ_INTERRUPT_TIMEOUT) {
        throw_word(php_jobq_ce_timeout, "timed_out", "the job is over its time limit of %H s",
                   (double)jobq_job_get(job, JOBQ_JOB_TIMEOUT_MS) / 1000.0);
    } else if (kind == JOBQ_INTERRUPT_STOP) {
        throw_word(php_jobq_ce_stop, "stopped",
                   jobq_job_is_cancelled(job) ? "the job is cancelled"
                                              : "the worker stops and cannot wait for the job");
    }
}

void php_jobq_throw_lease_lost(void)
{
    throw_word(php_jobq_ce_lease_lost, jobq_error_word(JOBQ_ELEASE),
               "the lease of the job is lost: its result will be refused");
}

void php_jobq_error_take(zval *out)
{
    zend_object *thrown = EG(exception);
    GC_ADDREF(thrown);
    zend_clear_exception();
    ZVAL_OBJ(out, thrown);
}
