/* SPDX-License-Identifier: MIT
 *
 * Event: what a listener gets.
 */
#include "php_jobqueue.h"

#include "event_arginfo.h"

zend_class_entry *php_jobq_ce_event;

ZEND_METHOD(JobQueue_Event, __construct)
{
    ZEND_PARSE_PARAMETERS_NONE();
}

void php_jobq_event_make(zval *out, const char *name, zval *job, const char *queue, size_t queue_n,
                         const char *connection, zval *data)
{
    zval value;
    object_init_ex(out, php_jobq_ce_event);
    ZVAL_STRING(&value, name);
    php_jobq_init_property(Z_OBJ_P(out), 0, &value);
    if (job && Z_TYPE_P(job) == IS_OBJECT) {
        ZVAL_COPY(&value, job);
    } else {
        ZVAL_NULL(&value);
    }
    php_jobq_init_property(Z_OBJ_P(out), 1, &value);
    if (queue) {
        ZVAL_STRINGL(&value, queue, queue_n);
    } else {
        ZVAL_NULL(&value);
    }
    php_jobq_init_property(Z_OBJ_P(out), 2, &value);
    ZVAL_STRING(&value, connection);
    php_jobq_init_property(Z_OBJ_P(out), 3, &value);
    if (data) {
        ZVAL_COPY(&value, data);
    } else {
        ZVAL_EMPTY_ARRAY(&value);
    }
    php_jobq_init_property(Z_OBJ_P(out), 4, &value);
}

void php_jobq_register_event(void)
{
    php_jobq_ce_event = register_class_JobQueue_Event();
}
