/* SPDX-License-Identifier: MIT
 *
 * Queue::push: one message, reused from call to call.
 */
#include "php_jobqueue.h"

#include <ext/date/php_date.h>

zend_result php_jobq_message_fill(jobq_message *m, zval *job, zval *payload)
{
    ZVAL_DEREF(job);
    if (Z_TYPE_P(job) == IS_OBJECT) {
        if (payload && Z_TYPE_P(payload) != IS_NULL) {
            php_jobq_throw_usage("a job object carries its own payload: give either the object or "
                                 "a name and a payload");
            return FAILURE;
        }
        return php_jobq_as_job_fill(m, Z_OBJ_P(job));
    }
    if (Z_TYPE_P(job) != IS_STRING) {
        php_jobq_throw_type(
            "a job is a name or an object of a class with #[JobQueue\\AsJob], %s given",
            zend_zval_type_name(job));
        return FAILURE;
    }
    if (jobq_message_set_name(m, Z_STRVAL_P(job), Z_STRLEN_P(job)) < 0) {
        php_jobq_throw_last();
        return FAILURE;
    }
    return payload ? php_jobq_encode(jobq_message_payload(m), payload) : SUCCESS;
}

zend_result php_jobq_message_context(jobq_message *m, HashTable *context)
{
    zend_string *key;
    zend_ulong index;
    zval *value;
    ZEND_HASH_FOREACH_KEY_VAL (context, index, key, value) {
        char digits[MAX_LENGTH_OF_LONG + 1];
        ZVAL_DEREF(value);
        int n = key ? 0 : snprintf(digits, sizeof(digits), ZEND_LONG_FMT, (zend_long)index);
        const char *name = key ? ZSTR_VAL(key) : digits;
        if (Z_TYPE_P(value) != IS_STRING) {
            php_jobq_throw_type("context: the value of \"%s\" must be a string, %s given", name,
                                zend_zval_type_name(value));
            return FAILURE;
        }
        if (jobq_message_add_context(m, name, key ? ZSTR_LEN(key) : (size_t)n, Z_STRVAL_P(value),
                                     Z_STRLEN_P(value)) < 0) {
            php_jobq_throw_last();
            return FAILURE;
        }
    }
    ZEND_HASH_FOREACH_END();
    return SUCCESS;
}

void php_jobq_fire_pushed(php_jobq_queue *queue, const jobq_message *m, zval *job)
{
    zval data;
    if (Z_TYPE(queue->listeners) != IS_ARRAY) {
        return;
    }
    const char *to = jobq_message_queue(m, queue->queue);
    array_init_size(&data, 2);
    add_assoc_string(&data, "id", jobq_message_id(m));
    if (Z_TYPE_P(job) == IS_STRING) {
        Z_TRY_ADDREF_P(job);
        add_assoc_zval(&data, "name", job);
    } else {
        zval name = php_jobq_as_job_of(Z_OBJCE_P(job))->fields[PHP_JOBQ_AS_NAME]; /* was pushed */
        Z_TRY_ADDREF(name);
        add_assoc_zval(&data, "name", &name);
    }
    int status = 0;
    php_jobq_outcome outcome =
        php_jobq_fire(&queue->listeners, "job.pushed", NULL, to, strlen(to),
                      jobq_queue_connection(queue->queue), &data, false, &status);
    zval_ptr_dtor(&data);
    if (outcome == PHP_JOBQ_FATAL) {
        zend_bailout();
    } else if (outcome == PHP_JOBQ_EXITED) {
        EG(exit_status) = status;
        zend_throw_unwind_exit();
    }
}

/* The parameters behind the payload, in the order of the stub; context is none of the library's
 * options. */
static const char *const names[] = {"queue",   "delay",  "at",    "priority", "id",
                                    "version", "unique", "tries", "timeout",  "backoff"};
enum {
    FIRST = 2,
    OPTIONS = sizeof(names) / sizeof(names[0]),
    CONTEXT = FIRST + OPTIONS,
    PARAMETERS
};

/* The stub's types, one letter each: s string, n number, i integer, d date, b backoff. */
static const char kinds[OPTIONS + 1] = "sndisisinb";

static bool fits(char kind, const zval *value)
{
    switch (kind) {
    case 's':
        return Z_TYPE_P(value) == IS_STRING;
    case 'i':
        return Z_TYPE_P(value) == IS_LONG;
    case 'n':
        return Z_TYPE_P(value) == IS_LONG || Z_TYPE_P(value) == IS_DOUBLE;
    case 'd':
        return Z_TYPE_P(value) == IS_OBJECT &&
               instanceof_function(Z_OBJCE_P(value), php_date_get_interface_ce());
    default:
        return Z_TYPE_P(value) == IS_LONG || Z_TYPE_P(value) == IS_DOUBLE ||
               Z_TYPE_P(value) == IS_STRING || Z_TYPE_P(value) == IS_ARRAY;
    }
}

static const char *kind_text(char kind)
{
    return kind == 's'   ? "?string"
           : kind == 'i' ? "?int"
           : kind == 'n' ? "int|float|null"
           : kind == 'd' ? "?DateTimeInterface"
                         : "int|float|array|string|null";
}

/* Positional and named parameters arrive alike: one slot each, null or undefined when not given. */
static zend_result set_options(jobq_conf *conf, zval *arguments, uint32_t count)
{
    for (uint32_t i = 0; i < OPTIONS && FIRST + i < count; i++) {
        zval *value = arguments + FIRST + i;
        ZVAL_DEREF(value);
        if (Z_TYPE_P(value) == IS_NULL || Z_TYPE_P(value) == IS_UNDEF) {
            continue;
        }
        if (!fits(kinds[i], value)) {
            zend_argument_type_error(FIRST + i + 1, "must be of type %s, %s given",
                                     kind_text(kinds[i]), zend_zval_type_name(value));
            return FAILURE;
        }
        if (php_jobq_conf_set(conf, names[i], value) == FAILURE) {
            return FAILURE;
        }
    }
    return SUCCESS;
}

static zend_result set_context(jobq_message *m, zval *arguments, uint32_t count)
{
    if (count <= CONTEXT || Z_TYPE(arguments[CONTEXT]) == IS_UNDEF) {
        return SUCCESS;
    }
    zval *context = arguments + CONTEXT;
    ZVAL_DEREF(context);
    if (Z_TYPE_P(context) != IS_ARRAY) {
        zend_argument_type_error(CONTEXT + 1, "must be of type array, %s given",
                                 zend_zval_type_name(context));
        return FAILURE;
    }
    return php_jobq_message_context(m, Z_ARRVAL_P(context));
}

/* Options that are no parameters: their own set, because here names are spelled as PHP spells them.
 */
zend_result php_jobq_extras_begin(php_jobq_queue *queue)
{
    if (queue->extras) {
        jobq_conf_reset(queue->extras);
    } else if (!(queue->extras = jobq_conf_new(JOBQ_SCOPE_PUSH, JOBQ_STYLE_CAMEL))) {
        php_jobq_throw_last();
        return FAILURE;
    }
    return SUCCESS;
}

zend_result php_jobq_extras_end(php_jobq_queue *queue, jobq_message *m)
{
    if (jobq_conf_merge(jobq_message_options(m), queue->extras) < 0) {
        php_jobq_throw_last();
        return FAILURE;
    }
    return SUCCESS;
}

static zend_result set_guard(jobq_message *m, zval *value)
{
    php_jobq_statement guard;
    ZVAL_DEREF(value);
    if (Z_TYPE_P(value) == IS_NULL) {
        return SUCCESS;
    }
    if (php_jobq_statement_read("guard", true, value, &guard) == FAILURE) {
        return FAILURE;
    }
    int rc = jobq_message_set_guard(m, &guard.statement);
    php_jobq_statement_free(&guard);
    if (rc < 0) {
        php_jobq_throw_last();
        return FAILURE;
    }
    return SUCCESS;
}

zend_result php_jobq_message_option(php_jobq_queue *queue, jobq_message *m, zend_string *name,
                                    zval *value)
{
    if (zend_string_equals_literal(name, "guard")) {
        return set_guard(m, value);
    }
    if (!zend_string_equals_literal(name, "context")) {
        return php_jobq_conf_named(queue->extras, name, value);
    }
    if (Z_TYPE_P(value) == IS_ARRAY) {
        return php_jobq_message_context(m, Z_ARRVAL_P(value));
    }
    php_jobq_throw_type("context must be an array, %s given", zend_zval_type_name(value));
    return FAILURE;
}

static zend_result set_extras(php_jobq_queue *queue, jobq_message *m, HashTable *extra)
{
    zend_string *name;
    zval *value;
    if (!extra) {
        return SUCCESS;
    }
    if (php_jobq_extras_begin(queue) == FAILURE) {
        return FAILURE;
    }
    ZEND_HASH_FOREACH_STR_KEY_VAL (extra, name, value) {
        if (php_jobq_message_option(queue, m, name, value) == FAILURE) {
            return FAILURE;
        }
    }
    ZEND_HASH_FOREACH_END();
    return php_jobq_extras_end(queue, m);
}

static zend_result fill(php_jobq_queue *queue, zval *arguments, uint32_t count, HashTable *extra)
{
    jobq_message *m = queue->message;
    jobq_conf *conf = jobq_message_options(m);
    return php_jobq_message_fill(m, arguments, count > 1 ? arguments + 1 : NULL) == FAILURE ||
                   set_options(conf, arguments, count) == FAILURE ||
                   set_context(m, arguments, count) == FAILURE ||
                   set_extras(queue, m, extra) == FAILURE
               ? FAILURE
               : SUCCESS;
}

/* The types are checked by hand: thirteen parameters of which most calls give two. NULL: thrown. */
static php_jobq_queue *take_message(zend_execute_data *execute_data, HashTable *extra)
{
    uint32_t count = ZEND_NUM_ARGS();
    if (count < 1 || count > PARAMETERS) {
        zend_wrong_parameters_count_error(1, PARAMETERS);
        return NULL;
    }
    php_jobq_queue *queue = php_jobq_queue_get(ZEND_THIS);
    if (!queue) {
        return NULL;
    }
    jobq_message_reset(queue->message);
    return fill(queue, ZEND_CALL_ARG(execute_data, 1), count, extra) == SUCCESS ? queue : NULL;
}

static HashTable *extra_named(zend_execute_data *execute_data)
{
    return ZEND_CALL_INFO(execute_data) & ZEND_CALL_HAS_EXTRA_NAMED_PARAMS ? EX(extra_named_params)
                                                                           : NULL;
}

ZEND_METHOD(JobQueue_Queue, push)
{
    php_jobq_queue *queue = take_message(execute_data, extra_named(execute_data));
    if (!queue) {
        RETURN_THROWS();
    }
    int rc = jobq_queue_push(queue->queue, queue->message);
    if (rc < 0) {
        php_jobq_throw_last();
        RETURN_THROWS();
    }
    const char *id = jobq_message_id(queue->message);
    RETVAL_STRINGL(id, strlen(id));
    if (rc == 0) {
        php_jobq_fire_pushed(queue, queue->message, ZEND_CALL_ARG(execute_data, 1));
    }
}

/* `placeholders` is no option of a push: it is taken out before they are judged. */
static zend_result take_placeholders(HashTable *extra, int *out)
{
    zval *value = extra ? zend_hash_str_find(extra, ZEND_STRL("placeholders")) : NULL;
    *out = JOBQ_PLACEHOLDER_QUESTION;
    if (!value) {
        return SUCCESS;
    }
    ZVAL_DEREF(value);
    if (Z_TYPE_P(value) != IS_STRING) {
        php_jobq_throw_type("placeholders must be a string, %s given", zend_zval_type_name(value));
        return FAILURE;
    }
    zend_result result = php_jobq_placeholders(Z_STR_P(value), out);
    zend_hash_str_del(extra, ZEND_STRL("placeholders"));
    return result;
}

/* Rule B8: nothing is sent; a rejected job is a row of the answer. */
ZEND_METHOD(JobQueue_Queue, pushStatement)
{
    HashTable *extra = extra_named(execute_data);
    const jobq_statement *statement = NULL;
    int placeholders;
    if (take_placeholders(extra, &placeholders) == FAILURE) {
        RETURN_THROWS();
    }
    php_jobq_queue *queue = take_message(execute_data, extra);
    if (!queue) {
        RETURN_THROWS();
    }
    if (jobq_queue_push_statement(queue->queue, queue->message, placeholders, &statement) < 0) {
        php_jobq_throw_last();
        RETURN_THROWS();
    }
    php_jobq_statement_make(return_value, statement);
}
