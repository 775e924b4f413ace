/* SPDX-License-Identifier: MIT
 *
 * Stats: the counts of one queue (rule N1).
 */
#include "php_jobqueue.h"

#include <ext/json/php_json.h>

#include "stats_arginfo.h"

zend_class_entry *php_jobq_ce_stats;

/* Property i of the class and its name in JSON. */
static const char *const json_names[] = {"queue", "ready",   "delayed",         "reserved",
                                         "dead",  "backlog", "oldest_ready_age"};

ZEND_METHOD(JobQueue_Stats, __construct)
{
    ZEND_PARSE_PARAMETERS_NONE();
}

ZEND_METHOD(JobQueue_Stats, jsonSerialize)
{
    ZEND_PARSE_PARAMETERS_NONE();
    array_init(return_value);
    for (uint32_t i = 0; i < sizeof(json_names) / sizeof(json_names[0]); i++) {
        zval *value = OBJ_PROP_NUM(Z_OBJ_P(ZEND_THIS), i);
        Z_TRY_ADDREF_P(value);
        add_assoc_zval(return_value, json_names[i], value);
    }
}

void php_jobq_stats_make(zval *out, const char *name, size_t n, const int64_t *values)
{
    zval value;
    object_init_ex(out, php_jobq_ce_stats);
    ZVAL_STRINGL(&value, name, n);
    php_jobq_init_property(Z_OBJ_P(out), 0, &value);
    for (uint32_t i = JOBQ_STAT_READY; i <= JOBQ_STAT_BACKLOG; i++) {
        ZVAL_LONG(&value, (zend_long)values[i]);
        php_jobq_init_property(Z_OBJ_P(out), 1 + i, &value);
    }
    ZVAL_NULL(&value);
    if (values[JOBQ_STAT_OLDEST_READY_AGE_MS] >= 0) {
        ZVAL_DOUBLE(&value, (double)values[JOBQ_STAT_OLDEST_READY_AGE_MS] / 1000.0);
    }
    php_jobq_init_property(Z_OBJ_P(out), 6, &value);
}

void php_jobq_register_stats(void)
{
    php_jobq_ce_stats = register_class_JobQueue_Stats(php_json_serializable_ce);
}
