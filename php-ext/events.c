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

static void refuse_event(const char *name, bool producer)
{
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
} call;

static void call_listener(void *argument)
{
    call *c = argument;
    php_jobq_call(c->callable, 1, c->event, NULL);
}

php_jobq_outcome php_jobq_fire(zval *listeners, const char *name, zval *job, const char *queue,
                               size_t queue_n, const char *connection, zval *data, bool strict,
                               int *status_out)
{
    zval *found = php_jobq_listeners(listeners, name, strlen(name));
    if (!found) {
        return PHP_JOBQ_RETURNED;
    }
    zval list, event, *callable;
    php_jobq_outcome outcome = PHP_JOBQ_RETURNED;
    ZVAL_COPY(&list, found); /* a listener may add another */
    php_jobq_event_make(&event, name, job, queue, queue_n, connection, data);
    ZEND_HASH_FOREACH_VAL (Z_ARRVAL(list), callable) {
        call c = {callable, &event};
        outcome = php_jobq_guard(call_listener, &c, status_out);
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
        zval_ptr_dtor(&event);
        zval_ptr_dtor(&list);
        EG(exception) = pending;
    }
    return outcome;
}
