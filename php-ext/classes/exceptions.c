/* SPDX-License-Identifier: MIT
 *
 * The exception classes. Which error becomes which: error.c.
 */
#include "php_jobqueue.h"

#include <ext/spl/spl_exceptions.h>

#include "exceptions_arginfo.h"

zend_class_entry *php_jobq_ce_exception_interface, *php_jobq_ce_not_retryable,
    *php_jobq_ce_queue_exception, *php_jobq_ce_connection, *php_jobq_ce_outcome_unknown,
    *php_jobq_ce_duplicate, *php_jobq_ce_lease_lost, *php_jobq_ce_payload, *php_jobq_ce_not_found,
    *php_jobq_ce_timeout, *php_jobq_ce_stop, *php_jobq_ce_recorded, *php_jobq_ce_retry_after,
    *php_jobq_ce_full, *php_jobq_ce_guard, *php_jobq_ce_dead, *php_jobq_ce_wait;

ZEND_METHOD(JobQueue_QueueException, isRetryable)
{
    zval rv;
    ZEND_PARSE_PARAMETERS_NONE();
    zval *value = zend_read_property(php_jobq_ce_queue_exception, Z_OBJ_P(ZEND_THIS), "retryable",
                                     sizeof("retryable") - 1, true, &rv);
    RETURN_BOOL(zend_is_true(value));
}

ZEND_METHOD(JobQueue_RetryAfter, __construct)
{
    zval *seconds, *previous = NULL;
    zend_string *message = NULL;
    int64_t ms;
    ZEND_PARSE_PARAMETERS_START(1, 3)
        Z_PARAM_NUMBER(seconds)
        Z_PARAM_OPTIONAL
        Z_PARAM_STR(message)
        Z_PARAM_OBJECT_OF_CLASS_OR_NULL(previous, zend_ce_throwable)
    ZEND_PARSE_PARAMETERS_END();
    if (php_jobq_seconds(zval_get_double(seconds), "seconds", &ms) == FAILURE) {
        RETURN_THROWS();
    }
    zend_object *self = Z_OBJ_P(ZEND_THIS);
    zend_update_property(php_jobq_ce_retry_after, self, "seconds", sizeof("seconds") - 1, seconds);
    if (message) {
        zval value;
        ZVAL_STR(&value, message);
        zend_update_property_ex(zend_ce_exception, self, ZSTR_KNOWN(ZEND_STR_MESSAGE), &value);
    }
    if (previous) {
        zend_update_property_ex(zend_ce_exception, self, ZSTR_KNOWN(ZEND_STR_PREVIOUS), previous);
    }
    php_jobq_error_code(self, "retry_after");
}

static void set_text(zend_object *self, const char *name, size_t n, const char *text)
{
    zval value;
    if (text) {
        ZVAL_STRING(&value, text);
    } else {
        ZVAL_NULL(&value);
    }
    zend_update_property(php_jobq_ce_recorded, self, name, n, &value);
    zval_ptr_dtor(&value);
}

void php_jobq_recorded_make(zval *out, const jobq_info *info)
{
    const char *class_name = NULL, *message = NULL, *where = NULL, *trace = NULL;
    zval text;
    ZVAL_NULL(out);
    if (!jobq_info_error(info, &class_name, &message, &where, &trace)) {
        return;
    }
    object_init_ex(out, php_jobq_ce_recorded);
    zend_object *self = Z_OBJ_P(out);
    ZVAL_STRING(&text, message ? message : "");
    zend_update_property_ex(zend_ce_exception, self, ZSTR_KNOWN(ZEND_STR_MESSAGE), &text);
    zval_ptr_dtor(&text);
    set_text(self, ZEND_STRL("className"), class_name);
    set_text(self, ZEND_STRL("place"), where);
    set_text(self, ZEND_STRL("recordedTrace"), trace);
    php_jobq_error_code(self, "recorded");
}

void php_jobq_register_exceptions(void)
{
    php_jobq_ce_exception_interface = register_class_JobQueue_ExceptionInterface(zend_ce_throwable);
    php_jobq_ce_not_retryable = register_class_JobQueue_NotRetryable();
    php_jobq_ce_queue_exception = register_class_JobQueue_QueueException(
        spl_ce_RuntimeException, php_jobq_ce_exception_interface);
    php_jobq_ce_connection =
        register_class_JobQueue_ConnectionException(php_jobq_ce_queue_exception);
    php_jobq_ce_outcome_unknown =
        register_class_JobQueue_OutcomeUnknown(php_jobq_ce_queue_exception);
    php_jobq_ce_duplicate = register_class_JobQueue_DuplicateJob(php_jobq_ce_queue_exception);
    php_jobq_ce_full = register_class_JobQueue_QueueFull(php_jobq_ce_queue_exception);
    php_jobq_ce_guard = register_class_JobQueue_GuardRefused(php_jobq_ce_queue_exception);
    php_jobq_ce_dead = register_class_JobQueue_JobDead(php_jobq_ce_queue_exception);
    php_jobq_ce_wait = register_class_JobQueue_WaitTimeout(php_jobq_ce_queue_exception);
    php_jobq_ce_lease_lost = register_class_JobQueue_LeaseLost(php_jobq_ce_queue_exception);
    php_jobq_ce_payload = register_class_JobQueue_PayloadException(php_jobq_ce_queue_exception);
    php_jobq_ce_not_found = register_class_JobQueue_NotFound(php_jobq_ce_queue_exception);
    php_jobq_ce_timeout = register_class_JobQueue_TimeoutException(php_jobq_ce_queue_exception);
    php_jobq_ce_stop = register_class_JobQueue_StopException(php_jobq_ce_queue_exception);
    php_jobq_ce_recorded = register_class_JobQueue_RecordedException(php_jobq_ce_queue_exception);
    php_jobq_ce_retry_after = register_class_JobQueue_RetryAfter(php_jobq_ce_queue_exception);
}
