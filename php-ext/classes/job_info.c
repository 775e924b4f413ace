/* SPDX-License-Identifier: MIT
 *
 * JobInfo: a job as it stands in the store, copied out once.
 */
#include "php_jobqueue.h"

#include "job_info_arginfo.h"

zend_class_entry *php_jobq_ce_job_info;

/* The declared properties in the order of the stub. */
enum {
    P_ID,
    P_NAME,
    P_QUEUE,
    P_VERSION,
    P_STATE,
    P_ATTEMPT,
    P_FAILURES,
    P_CRASHES,
    P_RELEASES,
    P_DELIVERIES,
    P_LOSSES,
    P_PRIORITY,
    P_UNIQUE,
    P_PAYLOAD,
    P_PAYLOAD_ERROR,
    P_CONTEXT,
    P_OPTIONS,
    P_ENQUEUED_AT,
    P_AVAILABLE_AT,
    P_RESERVED_UNTIL,
    P_RESERVED_BY,
    P_DIED_AT,
    P_REASON,
    P_LAST_ERROR,
    P_HISTORY,
    P_PROGRESS,
    P_RESULT,
    P_RESULT_ERROR,
    P_KEPT_UNTIL
};

static const struct {
    uint32_t property;
    jobq_info_text_field field;
} texts[] = {
    {P_ID, JOBQ_INFO_ID},         {P_NAME, JOBQ_INFO_NAME},
    {P_QUEUE, JOBQ_INFO_QUEUE},   {P_RESERVED_BY, JOBQ_INFO_RESERVED_BY},
    {P_REASON, JOBQ_INFO_REASON}, {P_UNIQUE, JOBQ_INFO_UNIQUE},
};
static const struct {
    uint32_t property;
    jobq_info_number_field field;
    bool time;
} numbers[] = {
    {P_VERSION, JOBQ_INFO_VERSION, false},
    {P_ATTEMPT, JOBQ_INFO_ATTEMPT, false},
    {P_FAILURES, JOBQ_INFO_FAILURES, false},
    {P_CRASHES, JOBQ_INFO_CRASHES, false},
    {P_RELEASES, JOBQ_INFO_RELEASES, false},
    {P_DELIVERIES, JOBQ_INFO_DELIVERIES, false},
    {P_LOSSES, JOBQ_INFO_LOSSES, false},
    {P_PRIORITY, JOBQ_INFO_PRIORITY, false},
    {P_ENQUEUED_AT, JOBQ_INFO_ENQUEUED_AT_MS, true},
    {P_AVAILABLE_AT, JOBQ_INFO_AVAILABLE_AT_MS, true},
    {P_RESERVED_UNTIL, JOBQ_INFO_RESERVED_UNTIL_MS, true},
    {P_DIED_AT, JOBQ_INFO_DIED_AT_MS, true},
    {P_KEPT_UNTIL, JOBQ_INFO_KEPT_UNTIL_MS, true},
};

ZEND_METHOD(JobQueue_JobInfo, __construct)
{
    ZEND_PARSE_PARAMETERS_NONE();
}

static void init_texts(zend_object *object, const jobq_info *info)
{
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        zval value;
        size_t n = 0;
        const char *text = jobq_info_text(info, texts[i].field, &n);
        if (text) {
            ZVAL_STRINGL(&value, text, n);
        } else if (texts[i].property <= P_QUEUE) {
            ZVAL_EMPTY_STRING(&value);
        } else {
            ZVAL_NULL(&value);
        }
        php_jobq_init_property(object, texts[i].property, &value);
    }
}

static void init_numbers(zend_object *object, const jobq_info *info)
{
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        zval value;
        int64_t number = jobq_info_number(info, numbers[i].field);
        if (!numbers[i].time) {
            ZVAL_LONG(&value, (zend_long)number);
        } else if (number == 0 && numbers[i].property == P_ENQUEUED_AT) {
            php_jobq_time_make(&value, 0, 0);
        } else {
            php_jobq_time_from_ms(&value, number);
        }
        php_jobq_init_property(object, numbers[i].property, &value);
    }
}

static void leave_payload(zend_object *object)
{
    zval payload, problem;
    ZVAL_NULL(&payload);
    ZVAL_STRING(&problem, "the payload is left out: an earlier try has died of it");
    php_jobq_init_property(object, P_PAYLOAD, &payload);
    php_jobq_init_property(object, P_PAYLOAD_ERROR, &problem);
}

static void init_payload(zend_object *object, const jobq_info *info)
{
    zval payload, problem;
    size_t n;
    int format;
    const void *body = jobq_info_body(info, &n, &format);
    int rc = jobq_info_check(info);
    ZVAL_NULL(&payload);
    ZVAL_NULL(&problem);
    if (rc >= 0) {
        rc = php_jobq_decode(format, body, n, false, &payload);
    }
    if (rc < 0) {
        const char *text = jobq_error_message(jobq_error_last());
        ZVAL_STRING(&problem, *text ? text : "the payload cannot be read");
    }
    php_jobq_init_property(object, P_PAYLOAD, &payload);
    php_jobq_init_property(object, P_PAYLOAD_ERROR, &problem);
}

static bool context_pair(const void *info, size_t i, php_jobq_pair *pair)
{
    return jobq_info_context(info, i, &pair->key, &pair->key_n, &pair->value, &pair->value_n);
}

static void init_options(zend_object *object, const jobq_info *info)
{
    zval list;
    const char *name, *value;
    char spelled[64];
    array_init(&list);
    for (size_t i = 0; jobq_info_option(info, i, &name, &value); i++) {
        zend_long whole;
        double number;
        zval one;
        zend_uchar type = strcmp(name, "unique") == 0
                              ? 0
                              : is_numeric_string(value, strlen(value), &whole, &number, false);
        if (type == IS_LONG) {
            ZVAL_LONG(&one, whole);
        } else if (type == IS_DOUBLE) {
            ZVAL_DOUBLE(&one, number);
        } else {
            ZVAL_STRING(&one, value);
        }
        zend_hash_str_update(Z_ARRVAL(list), spelled,
                             php_jobq_camel(name, spelled, sizeof(spelled)), &one);
    }
    php_jobq_init_property(object, P_OPTIONS, &list);
}

static void add_text(zval *list, const char *key, const char *text)
{
    if (text) {
        add_assoc_string(list, key, text);
    } else {
        add_assoc_null(list, key);
    }
}

static void init_last_error(zend_object *object, const jobq_info *info)
{
    zval error;
    const char *class_name, *message, *where, *trace;
    ZVAL_NULL(&error);
    if (jobq_info_error(info, &class_name, &message, &where, &trace)) {
        array_init_size(&error, 4);
        add_text(&error, "class", class_name);
        add_text(&error, "message", message);
        add_text(&error, "where", where);
        add_text(&error, "trace", trace);
    }
    php_jobq_init_property(object, P_LAST_ERROR, &error);
}

static void init_history(zend_object *object, const jobq_info *info)
{
    zval history;
    int64_t started, ended;
    const char *worker, *outcome, *class_name, *message;
    array_init(&history);
    for (size_t i = 0;
         jobq_info_attempt(info, i, &started, &ended, &worker, &outcome, &class_name, &message);
         i++) {
        zval entry, time;
        array_init_size(&entry, 6);
        php_jobq_time_from_ms(&time, started);
        add_assoc_zval(&entry, "started", &time);
        php_jobq_time_from_ms(&time, ended);
        add_assoc_zval(&entry, "ended", &time);
        add_text(&entry, "worker", worker);
        add_text(&entry, "outcome", outcome);
        add_text(&entry, "class", class_name);
        add_text(&entry, "message", message);
        if (jobq_info_attempt_shared(info, i)) {
            add_assoc_bool(&entry, "shared", true);
        }
        add_next_index_zval(&history, &entry);
    }
    php_jobq_init_property(object, P_HISTORY, &history);
}

static void init_progress(zend_object *object, const jobq_info *info)
{
    zval progress;
    double percent;
    const char *note = NULL;
    ZVAL_NULL(&progress);
    if (jobq_info_progress(info, &percent, &note)) {
        array_init_size(&progress, 2);
        add_assoc_double(&progress, "percent", percent);
        add_text(&progress, "note", note);
    }
    php_jobq_init_property(object, P_PROGRESS, &progress);
}

static void init_result(zend_object *object, const jobq_info *info)
{
    zval result, problem;
    size_t n;
    int format;
    const char *refusal = NULL;
    const void *body = jobq_info_result(info, &n, &format, &refusal);
    ZVAL_NULL(&result);
    if (body && php_jobq_decode(format, body, n, false, &result) < 0) {
        ZVAL_NULL(&result);
        refusal = jobq_error_message(jobq_error_last());
    }
    php_jobq_init_property(object, P_RESULT, &result);
    ZVAL_NULL(&problem);
    if (refusal) {
        ZVAL_STRING(&problem, refusal);
    }
    php_jobq_init_property(object, P_RESULT_ERROR, &problem);
}

static void make(zval *out, const jobq_info *info, bool with_payload)
{
    object_init_ex(out, php_jobq_ce_job_info);
    zend_object *object = Z_OBJ_P(out);
    zval state, context;
    php_jobq_state_make(&state, (jobq_state)jobq_info_number(info, JOBQ_INFO_STATE));
    php_jobq_init_property(object, P_STATE, &state);
    init_texts(object, info);
    init_numbers(object, info);
    if (with_payload) {
        init_payload(object, info);
    } else {
        leave_payload(object);
    }
    php_jobq_context(&context, context_pair, info);
    php_jobq_init_property(object, P_CONTEXT, &context);
    init_options(object, info);
    init_last_error(object, info);
    init_history(object, info);
    init_progress(object, info);
    init_result(object, info);
}

void php_jobq_job_info_make(zval *out, const jobq_info *info)
{
    make(out, info, true);
}

void php_jobq_job_info_make_bare(zval *out, const jobq_info *info)
{
    make(out, info, false);
}

void php_jobq_register_job_info(void)
{
    php_jobq_ce_job_info = register_class_JobQueue_JobInfo();
}
