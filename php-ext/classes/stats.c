/* SPDX-License-Identifier: MIT
 *
 * Stats: the counts of one queue (rule N1).
 */
#include "php_jobqueue.h"

#include <ext/date/php_date.h>
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
                  {"oldest_ready_age", -1},
                  {"capacity", JOBQ_STAT_CAPACITY},
                  {"per_minute", -1}};
enum { P_QUEUE = 0, P_PAUSED = 5, P_OLDEST = 7, P_MINUTES = 9, PROPERTIES = 10 };

ZEND_METHOD(JobQueue_Stats, __construct)
{
    ZEND_PARSE_PARAMETERS_NONE();
}

/* "timedOut" -> "timed_out"; times as RFC 3339. */
static void value_to_json(zval *out, zval *value);

static void array_to_json(zval *out, HashTable *array)
{
    zend_string *key;
    zval *value, copy;
    array_init(out);
    ZEND_HASH_FOREACH_STR_KEY_VAL (array, key, value) {
        value_to_json(&copy, value);
        if (!key) {
            add_next_index_zval(out, &copy);
        } else {
            zend_string *snake = php_jobq_snake(key);
            zend_hash_update(Z_ARRVAL_P(out), snake, &copy);
            zend_string_release(snake);
        }
    }
    ZEND_HASH_FOREACH_END();
}

static void value_to_json(zval *out, zval *value)
{
    int64_t seconds;
    uint32_t microseconds;
    if (Z_TYPE_P(value) == IS_ARRAY) {
        array_to_json(out, Z_ARRVAL_P(value));
    } else if (Z_TYPE_P(value) == IS_OBJECT && php_jobq_time_read(value, &seconds, &microseconds)) {
        ZVAL_STR(out, php_format_date(ZEND_STRL("Y-m-d\\TH:i:s\\Z"), (time_t)seconds, false));
    } else {
        ZVAL_COPY(out, value);
    }
}

ZEND_METHOD(JobQueue_Stats, jsonSerialize)
{
    ZEND_PARSE_PARAMETERS_NONE();
    array_init(return_value);
    for (uint32_t i = 0; i < P_MINUTES; i++) {
        zval *value = OBJ_PROP_NUM(Z_OBJ_P(ZEND_THIS), i);
        Z_TRY_ADDREF_P(value);
        add_assoc_zval(return_value, properties[i].json, value);
    }
    zval list;
    value_to_json(&list, OBJ_PROP_NUM(Z_OBJ_P(ZEND_THIS), P_MINUTES));
    add_assoc_zval(return_value, properties[P_MINUTES].json, &list);
}

/* ---- minutes --------------------------------------------------------------------------------- */

static void add_runs(zval *to, const jobq_minute_stats *minute)
{
    zval list;
    array_init(&list);
    for (int i = 0; i < JOBQ_RUN_BUCKETS; i++) {
        zval bucket;
        if (minute->runs[i] == 0) {
            continue;
        }
        array_init_size(&bucket, 2);
        if (i + 1 < JOBQ_RUN_BUCKETS) {
            add_assoc_double(&bucket, "upTo", (double)((int64_t)1 << i) / 1000.0);
        } else {
            add_assoc_null(&bucket, "upTo");
        }
        add_assoc_long(&bucket, "count", (zend_long)minute->runs[i]);
        add_next_index_zval(&list, &bucket);
    }
    add_assoc_zval(to, "runs", &list);
}

static void add_minute(zval *list, const jobq_minute_stats *minute)
{
    zval one, at;
    array_init_size(&one, JOBQ_MINUTE_FIELDS + 2);
    php_jobq_time_from_ms(&at, minute->at_ms);
    add_assoc_zval(&one, "at", &at);
    for (int i = 0; i < JOBQ_MINUTE_FIELDS; i++) {
        char spelled[32];
        php_jobq_camel(jobq_minute_word((jobq_minute_field)i), spelled, sizeof(spelled));
        add_assoc_long(&one, spelled, (zend_long)minute->counts[i]);
    }
    add_runs(&one, minute);
    add_next_index_zval(list, &one);
}

void php_jobq_stats_make(zval *out, const char *name, size_t n, const int64_t *values,
                         const jobq_minute_stats *minutes, size_t minute_count)
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
    array_init_size(&value, (uint32_t)minute_count);
    for (size_t i = 0; i < minute_count; i++) {
        add_minute(&value, &minutes[i]);
    }
    php_jobq_init_property(Z_OBJ_P(out), P_MINUTES, &value);
}

void php_jobq_register_stats(void)
{
    php_jobq_ce_stats = register_class_JobQueue_Stats(php_json_serializable_ce);
}
