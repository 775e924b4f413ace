/* SPDX-License-Identifier: MIT
 *
 * Listeners and how they are called (rule M2).
 */
#include "php_jobqueue.h"

#include <zend_smart_str.h>

static bool is_producers(const char *name)
{
    return strcmp(name, "job.pushed") == 0;
}

static bool is_event(const char *name)
{
    for (size_t i = 0; jobq_event_list(i); i++) {
        if (strcmp(jobq_event_list(i), name) == 0) {
            return true;
        }
    }
    return false;
}

static void refuse_event(const char *name, bool producer)
{
    const char *near = jobq_event_nearest(name);
    if (is_event(name)) {
        php_jobq_throw_usage("\"%s\" is an event of a %s, not of a %s", name,
                             producer ? "Worker" : "Queue", producer ? "Queue" : "Worker");
        return;
    }
    if (near && is_producers(near) == producer) {
        php_jobq_throw_usage("unknown event \"%s\", did you mean \"%s\"?", name, near);
        return;
    }
    smart_str known = {0};
    for (size_t i = 0; jobq_event_list(i); i++) {
        if (is_producers(jobq_event_list(i)) == producer) {
            smart_str_appends(&known, known.s ? ", " : "");
            smart_str_appends(&known, jobq_event_list(i));
        }
    }
    smart_str_0(&known);
    php_jobq_throw_usage("unknown event \"%s\"; a %s has %s", name, producer ? "Queue" : "Worker",
                         known.s ? ZSTR_VAL(known.s) : "none");
    smart_str_free(&known);
}

zend_result php_jobq_listen(zval *listeners, zend_string *name, zval *callable, bool producer)
{
    bool known = false;
    for (size_t i = 0; jobq_event_list(i) && !known; i++) {
        known = zend_string_equals_cstr(name, jobq_event_list(i), strlen(jobq_event_list(i))) &&
                is_producers(ZSTR_VAL(name)) == producer;
    }
    if (!known) {
        refuse_event(ZSTR_VAL(name), producer);
        return FAILURE;
    }
    if (Z_TYPE_P(listeners) != IS_ARRAY) {
        array_init(listeners);
    }
    zval *list = zend_hash_find(Z_ARRVAL_P(listeners), name);
    if (!list) {
        zval fresh;
        array_init(&fresh);
        list = zend_hash_add_new(Z_ARRVAL_P(listeners), name, &fresh);
    }
    Z_TRY_ADDREF_P(callable);
    add_next_index_zval(list, callable);
    return SUCCESS;
}

typedef struct {
    zval *callable, *event;
    bool refused; /* it returned false */
} call;

static void call_listener(void *argument)
{
    call *c = argument;
    zval result;
    ZVAL_UNDEF(&result);
    php_jobq_call(c->callable, 1, c->event, &result);
    c->refused = Z_TYPE(result) == IS_FALSE;
    zval_ptr_dtor(&result);
}

/* Takes the event over. refused_out (may be NULL): one of them returned false. */
static php_jobq_outcome call_all(zval *found, zval *event, const char *name, bool strict,
                                 bool *refused_out, int *status_out)
{
    zval list, *callable;
    php_jobq_outcome outcome = PHP_JOBQ_RETURNED;
    ZVAL_COPY(&list, found); /* a listener may add another */
    ZEND_HASH_FOREACH_VAL (Z_ARRVAL(list), callable) {
        call c = {callable, event, false};
        outcome = php_jobq_guard(call_listener, &c, status_out);
        if (refused_out && c.refused) {
            *refused_out = true;
        }
        if (outcome == PHP_JOBQ_THREW && !strict) {
            zend_string *where = strpprintf(0, "a listener of %s", name);
            php_jobq_report_exception(ZSTR_VAL(where));
            zend_string_release(where);
            outcome = PHP_JOBQ_RETURNED;
        }
        if (outcome != PHP_JOBQ_RETURNED) {
            break;
        }
    }
    ZEND_HASH_FOREACH_END();
    if (outcome != PHP_JOBQ_FATAL) {
        zend_object *pending = EG(exception);
        EG(exception) = NULL;
        zval_ptr_dtor(event);
        zval_ptr_dtor(&list);
        EG(exception) = pending;
    }
    return outcome;
}

php_jobq_outcome php_jobq_fire(zval *listeners, const char *name, zval *job, const char *queue,
                               size_t queue_n, const char *connection, zval *data, bool strict,
                               int *status_out)
{
    zval *found = php_jobq_listeners(listeners, name, strlen(name)), event;
    if (!found) {
        return PHP_JOBQ_RETURNED;
    }
    php_jobq_event_make(&event, name, job, queue, queue_n, connection, data);
    return call_all(found, &event, name, strict, NULL, status_out);
}

php_jobq_outcome php_jobq_ask(zval *listeners, const char *name, const char *connection,
                              bool *vetoed_out, int *status_out)
{
    zval *found = php_jobq_listeners(listeners, name, strlen(name)), event;
    if (!found) {
        return PHP_JOBQ_RETURNED;
    }
    php_jobq_event_make(&event, name, NULL, NULL, 0, connection, NULL);
    return call_all(found, &event, name, false, vetoed_out, status_out);
}
