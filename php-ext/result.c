/* SPDX-License-Identifier: MIT
 *
 * What a handler returned, for jobs whose result is kept (rule N7).
 */
#include "php_jobqueue.h"

static int set_result(jobq_job *job, jobq_writer *w)
{
    const void *body;
    size_t n;
    int rc = jobq_writer_finish(w, &body, &n);
    return rc < 0 ? rc : jobq_job_set_result(job, JOBQ_FORMAT_MSGPACK, body, n);
}

zend_result php_jobq_result_set(jobq_job *job, zval *result)
{
    if (!jobq_job_is_kept(job)) {
        return SUCCESS;
    }
    jobq_writer *w = jobq_writer_new((size_t)64 << 20); /* the most that any queue takes */
    if (!w) {
        php_jobq_throw_last();
        return FAILURE;
    }
    zend_result encoded = php_jobq_encode(w, result);
    if (encoded == SUCCESS && set_result(job, w) < 0) {
        php_jobq_throw_last();
        encoded = FAILURE;
    }
    jobq_writer_free(w);
    return encoded;
}

/* "payload.x: …" is the words of a push; here it is the result that has the path. */
static zend_string *word_refusal(zval *message)
{
    static const char payload[] = "payload";
    const size_t n = sizeof(payload) - 1;
    if (Z_TYPE_P(message) != IS_STRING) {
        return ZSTR_EMPTY_ALLOC();
    }
    return strncmp(Z_STRVAL_P(message), payload, n) == 0
               ? strpprintf(0, "result%s", Z_STRVAL_P(message) + n)
               : zend_string_copy(Z_STR_P(message));
}

/* The work is done whatever becomes of its result: whoever asks for that is told why there is
 * none. */
void php_jobq_result_keep(jobq_job *job, zval *result)
{
    zval rv;
    if (EG(exception) || php_jobq_result_set(job, result) == SUCCESS) {
        return;
    }
    zval *message = zend_read_property_ex(zend_get_exception_base(EG(exception)), EG(exception),
                                          ZSTR_KNOWN(ZEND_STR_MESSAGE), true, &rv);
    zend_string *text = word_refusal(message);
    zend_clear_exception();
    jobq_job_refuse_result(job, ZSTR_VAL(text), ZSTR_LEN(text));
    php_jobq_report("jobqueue: the result of job %s cannot be kept: %s", jobq_job_id(job),
                    ZSTR_VAL(text));
    zend_string_release(text);
}
