/* SPDX-License-Identifier: MIT
 *
 * Calling user code so that whatever it does comes back as one of four outcomes: it returned,
 * threw, called exit, or met a fatal error. Fatal errors unwind past C frames by longjmp; they end
 * here.
 */
#include "php_jobqueue.h"

#include <SAPI.h>
#include <main/php_output.h>
#include <zend_smart_str.h>

#include <pthread.h>
#include <unistd.h>

/* Raised in each forked child: asking for the pid is a system call, six a job. */
static uint64_t generation;

static void count_fork(void)
{
    generation++;
}

void php_jobq_guard_startup(void)
{
    pthread_atfork(NULL, NULL, count_fork);
}

static void forget_last_error(void)
{
    if (PG(last_error_message)) {
        zend_string_release(PG(last_error_message));
        PG(last_error_message) = NULL;
    }
    if (PG(last_error_file)) {
        zend_string_release(PG(last_error_file));
        PG(last_error_file) = NULL;
    }
    PG(last_error_type) = 0;
    PG(last_error_lineno) = 0;
}

static bool is_last_error_fatal(void)
{
    return PG(last_error_message) && (PG(last_error_type) & E_FATAL_ERRORS);
}

/* exit() travels as an exception of its own kind; so does an exhausted memory limit, with status
 * 255 and a fatal last error. */
static php_jobq_outcome judge_unwind(int *status_out)
{
    bool fatal = EG(exit_status) == 255 && is_last_error_fatal();
    zend_clear_exception();
    if (fatal) {
        return PHP_JOBQ_FATAL;
    }
    if (status_out) {
        *status_out = EG(exit_status);
    }
    return PHP_JOBQ_EXITED;
}

php_jobq_outcome php_jobq_guard(void (*body)(void *), void *argument, int *status_out)
{
    zend_execute_data *frame = EG(current_execute_data);
    volatile bool fatal = false;
    const uint64_t born = generation;
    forget_last_error();
    EG(exit_status) = 0;
    zend_try
    {
        body(argument);
    }
    zend_catch
    {
        fatal = true;
        EG(current_execute_data) = frame;
    }
    zend_end_try();
    if (UNEXPECTED(generation != born)) {
        php_jobq_leave(EG(exit_status));
    }
    if (fatal) {
        return PHP_JOBQ_FATAL;
    }
    if (EXPECTED(!EG(exception))) {
        return PHP_JOBQ_RETURNED;
    }
    return zend_is_unwind_exit(EG(exception)) || zend_is_graceful_exit(EG(exception))
               ? judge_unwind(status_out)
               : PHP_JOBQ_THREW;
}

zend_result php_jobq_call(zval *callable, uint32_t n, zval *arguments, zval *result)
{
    zend_fcall_info fci;
    zend_fcall_info_cache fcc;
    char *problem = NULL;
    zval unused;
    if (zend_fcall_info_init(callable, 0, &fci, &fcc, NULL, &problem) == FAILURE) {
        php_jobq_throw_type("not callable: %s", problem ? problem : "no such function");
        if (problem) {
            efree(problem);
        }
        return FAILURE;
    }
    const zend_function *function = fcc.function_handler;
    if (function->type == ZEND_INTERNAL_FUNCTION &&
        !(function->common.fn_flags & ZEND_ACC_VARIADIC) && n > function->common.num_args) {
        n = function->common.num_args;
    }
    ZVAL_UNDEF(&unused);
    fci.param_count = n;
    fci.params = arguments;
    fci.retval = result ? result : &unused;
    zend_result rc = zend_call_function(&fci, &fcc);
    if (!result) {
        zval_ptr_dtor(&unused);
    }
    return rc == FAILURE || EG(exception) ? FAILURE : SUCCESS;
}

size_t php_jobq_last_error(char *out, size_t size)
{
    if (!PG(last_error_message)) {
        return (size_t)snprintf(out, size, "the process ended with a fatal error");
    }
    int n = snprintf(out, size, "%s in %s:%d", ZSTR_VAL(PG(last_error_message)),
                     PG(last_error_file) ? ZSTR_VAL(PG(last_error_file)) : "unknown",
                     PG(last_error_lineno));
    return n < 0 ? 0 : (size_t)n < size ? (size_t)n : size - 1;
}

void php_jobq_report(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    zend_string *text = zend_vstrpprintf(0, fmt, args);
    va_end(args);
    for (size_t i = 0; i < ZSTR_LEN(text); i++) {
        if ((unsigned char)ZSTR_VAL(text)[i] < ' ' || ZSTR_VAL(text)[i] == 127) {
            ZSTR_VAL(text)[i] = ' ';
        }
    }
    php_log_err(ZSTR_VAL(text));
    zend_string_release(text);
}

void php_jobq_report_exception(const char *where)
{
    zval rv;
    zend_object *exception = EG(exception);
    if (!exception) {
        return;
    }
    zend_class_entry *base =
        instanceof_function(exception->ce, zend_ce_exception) ? zend_ce_exception : zend_ce_error;
    zval *message = zend_read_property_ex(base, exception, ZSTR_KNOWN(ZEND_STR_MESSAGE), true, &rv);
    php_jobq_report("jobqueue: %s threw %s: %s", where, ZSTR_VAL(exception->ce->name),
                    Z_TYPE_P(message) == IS_STRING ? Z_STRVAL_P(message) : "");
    zend_clear_exception();
}

void php_jobq_end_output(void)
{
    zend_execute_data *frame = EG(current_execute_data);
    if (php_output_get_level() > 0) {
        zend_try
        {
            php_output_end_all();
        }
        zend_catch
        {
            EG(current_execute_data) = frame;
        }
        zend_end_try();
        if (EG(exception)) {
            php_jobq_report_exception("an output callback");
        }
    }
    fflush(stdout);
}

ZEND_COLD void php_jobq_leave(int status)
{
    php_jobq_end_output();
    _exit(status);
}
