/* SPDX-License-Identifier: MIT
 *
 * Stats: the counts of one queue (rule N1).
 */
#include "php_jobqueue.h"

#include <ext/json/php_json.h>

#include "stats_arginfo.h"

zend_class_entry *php_jobq_ce_stats;

/* Property i of the class and its name in JSON; the counts by their place in the library's list,
 * -1: made by hand. */
static const struct {
    const char *json;
    int stat;
} properties[] = {{"queue", -1},
                  {"ready", JOBQ_STAT_READY},
                  {"delayed", JOBQ_STAT_DELAYED},
                  {"reserved", JOBQ_STAT_RESERVED},
                  {"dead", JOBQ_STAT_DEAD},
                  {"paused", -1},
                  {"backlog", JOBQ_STAT_BACKLOG},
                  {"oldest_ready_age", -1}};
enum { P_QUEUE = 0, P_PAUSED = 5, P_OLDEST = 7, PROPERTIES = 8 };

ZEND_METHOD(JobQueue_Stats, __construct)
{
    ZEND_PARSE_PARAMETERS_NONE();
}

ZEND_METHOD(JobQueue_Stats, jsonSerialize)
{
    ZEND_PARSE_PARAMETERS_NONE();
    array_init(return_value);
    for (uint32_t i = 0; i < PROPERTIES; i++) {
        zval *value = OBJ_PROP_NUM(Z_OBJ_P(ZEND_THIS), i);
        Z_TRY_ADDREF_P(value);
        add_assoc_zval(return_value, properties[i].json, value);
    }
}

void php_jobq_stats_make(zval *out, const char *name, size_t n, const int64_t *values)
{
    zval value;
    object_init_ex(out, php_jobq_ce_stats);
    ZVAL_STRINGL(&value, name, n);
    php_jobq_init_property(Z_OBJ_P(out), P_QUEUE, &value);
    for (uint32_t i = 0; i < PROPERTIES; i++) {
        if (properties[i].stat >= 0) {
            ZVAL_LONG(&value, (zend_long)values[properties[i].stat]);
            php_jobq_init_property(Z_OBJ_P(out), i, &value);
        }
    }
    ZVAL_BOOL(&value, values[JOBQ_STAT_PAUSED]);
    php_jobq_init_property(Z_OBJ_P(out), P_PAUSED, &value);
    ZVAL_NULL(&value);
    if (values[JOBQ_STAT_OLDEST_READY_AGE_MS] >= 0) {
        ZVAL_DOUBLE(&value, (double)values[JOBQ_STAT_OLDEST_READY_AGE_MS] / 1000.0);
    }
    php_jobq_init_property(Z_OBJ_P(out), P_OLDEST, &value);
}

void php_jobq_register_stats(void)
{
    php_jobq_ce_stats = register_class_JobQueue_Stats(php_json_serializable_ce);
}
