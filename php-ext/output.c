/* SPDX-License-Identifier: MIT
 *
 * The worker's option `output` as a stream or, inline, a callable (rule G4); its words and paths
 * are the library's.
 */
#include "php_jobqueue.h"

#include <main/php_output.h>

static php_stream *stream_of(zval *value)
{
    return zend_fetch_resource2_ex(value, NULL, php_file_le_stream(), php_file_le_pstream());
}

static void refuse(const char *given)
{
    php_jobq_throw_type("output: auto, jobs, summary, json, quiet, a path with a slash, an open "
                        "stream with a file descriptor, or inline a callable is expected, %s given",
                        given);
}

static bool check_stream(zval *value)
{
    php_stream *stream = stream_of(value);
    if (!stream) {
        refuse("a closed resource, or one that is no stream,");
    } else if (php_stream_can_cast(stream, PHP_STREAM_AS_FD) == FAILURE && !EG(exception)) {
        zend_string *given = strpprintf(0, "a stream of kind %s without one", stream->ops->label);
        refuse(ZSTR_VAL(given));
        zend_string_release(given);
    }
    return !EG(exception);
}

zend_result php_jobq_output_take(HashTable *options, zval *out)
{
    zval *value = options ? zend_hash_str_find(options, ZEND_STRL("output")) : NULL;
    ZVAL_UNDEF(out);
    if (!value) {
        return SUCCESS;
    }
    ZVAL_DEREF(value);
    if (Z_TYPE_P(value) == IS_NULL || Z_TYPE_P(value) == IS_STRING) {
        return SUCCESS;
    }
    if (Z_TYPE_P(value) == IS_RESOURCE) {
        if (!check_stream(value)) {
            return FAILURE;
        }
    } else if (!zend_is_callable(value, 0, NULL)) {
        refuse(zend_zval_type_name(value));
        return FAILURE;
    }
    ZVAL_COPY(out, value);
    return SUCCESS;
}

static zend_result use_stream(php_jobq_worker *worker, zval *value)
{
    int fd = -1;
    if (!check_stream(value)) { /* closed since */
        return FAILURE;
    }
    php_stream *stream = stream_of(value);
    php_stream_flush(stream);
    if (EG(exception)) {
        return FAILURE;
    }
    if (php_stream_cast(stream, PHP_STREAM_AS_FD | PHP_STREAM_CAST_INTERNAL, (void **)&fd, 0) ==
        FAILURE) {
        refuse("a stream that has none now");
        return FAILURE;
    }
    if (jobq_worker_set_output_fd(worker->worker, fd) < 0) {
        php_jobq_throw_last();
        return FAILURE;
    }
    return SUCCESS;
}

typedef struct {
    zval *callable, line;
    const char *text;
    size_t n;
} call;

static void call_it(void *argument)
{
    call *c = argument;
    ZVAL_STRINGL(&c->line, c->text, c->n); /* may exhaust the memory, too */
    php_jobq_call(c->callable, 1, &c->line, NULL);
}

/* Whatever it does, the worker goes on; only a fatal error ends it, once the library has returned:
 * unwinding must not pass through its frames. */
static void deliver_line(void *payload, const char *text, size_t n)
{
    php_jobq_worker *worker = payload;
    if (worker->muted) {
        return;
    }
    zend_object *pending = EG(exception);
    int kept = EG(exit_status), status = 0;
    call c = {.callable = &worker->line, .text = text, .n = n};
    EG(exception) = NULL;
    switch (php_jobq_guard(call_it, &c, &status)) {
    case PHP_JOBQ_THREW:
        php_jobq_report_exception("the output callable");
        break;
    case PHP_JOBQ_EXITED:
        php_jobq_report("jobqueue: the output callable called exit(%d), which ends nothing here",
                        status);
        break;
    case PHP_JOBQ_FATAL:
        worker->muted = worker->broken = true;
        jobq_worker_stop(worker->worker);
        break;
    default:
        break;
    }
    if (!worker->broken) {
        zval_ptr_dtor(&c.line);
        EG(exit_status) = kept;
    }
    EG(exception) = pending;
}

zend_result php_jobq_output_apply(php_jobq_worker *worker, zval *output)
{
    worker->muted = worker->broken = false;
    if (Z_TYPE_P(output) == IS_UNDEF) {
        return SUCCESS;
    }
    if (Z_TYPE_P(output) == IS_RESOURCE) {
        return use_stream(worker, output);
    }
    ZVAL_COPY(&worker->line, output);
    if (jobq_worker_set_output_line(worker->worker, deliver_line, worker, NULL) < 0) {
        php_jobq_throw_last();
        php_jobq_output_release(worker);
        return FAILURE;
    }
    return SUCCESS;
}

/* PHP writes nothing more after a broken pipe or a full disk; the next job may find it mended. */
void php_jobq_output_reopen(void)
{
    int status = php_output_get_status();
    if (status & PHP_OUTPUT_DISABLED) {
        php_output_set_status((unsigned char)(status & ~PHP_OUTPUT_DISABLED));
    }
    PG(connection_status) = PHP_CONNECTION_NORMAL;
}

void php_jobq_output_release(php_jobq_worker *worker)
{
    zval line;
    jobq_worker_set_output_fd(worker->worker, -1);
    ZVAL_COPY_VALUE(&line, &worker->line);
    ZVAL_UNDEF(&worker->line);
    zval_ptr_dtor(&line);
}
