/* SPDX-License-Identifier: MIT
 *
 * AsJob: reading the attribute, and from a job object to a message. The other way: as_job_build.c.
 */
#include "php_jobqueue.h"

#include <zend_attributes.h>

#include "as_job_arginfo.h"

zend_class_entry *php_jobq_ce_as_job;

const char *const php_jobq_as_words[PHP_JOBQ_AS_FIELDS] = {
    "name",     "queue", "tries",   "timeout", "backoff",
    "priority", "delay", "expires", "version", "unique"};

/* Fixed when the job is pushed (rule B2); the others are read when it runs. */
static const int fixed_at_push[] = {PHP_JOBQ_AS_QUEUE, PHP_JOBQ_AS_DELAY, PHP_JOBQ_AS_PRIORITY,
                                    PHP_JOBQ_AS_EXPIRES, PHP_JOBQ_AS_VERSION};

/* The stub's types stand with the typed properties, which check what they are given. */
ZEND_METHOD(JobQueue_AsJob, __construct)
{
    zval *arguments = ZEND_CALL_ARG(execute_data, 1);
    uint32_t n = ZEND_NUM_ARGS();
    if (n < 1 || n > PHP_JOBQ_AS_FIELDS) {
        zend_wrong_parameters_count_error(1, PHP_JOBQ_AS_FIELDS);
        RETURN_THROWS();
    }
    for (uint32_t i = 0; i < PHP_JOBQ_AS_FIELDS && !EG(exception); i++) {
        zval missing;
        ZVAL_NULL(&missing);
        if (i == PHP_JOBQ_AS_VERSION) {
            ZVAL_LONG(&missing, 1);
        }
        zval *value = i < n ? arguments + i : &missing;
        zend_update_property(php_jobq_ce_as_job, Z_OBJ_P(ZEND_THIS), php_jobq_as_words[i],
                             strlen(php_jobq_as_words[i]), value);
    }
}

/* ---- the attribute of a class ---------------------------------------------------------------- */

static void free_entry(zval *value)
{
    php_jobq_as_job *entry = Z_PTR_P(value);
    for (int i = 0; i < PHP_JOBQ_AS_FIELDS; i++) {
        zval_ptr_dtor(&entry->fields[i]);
    }
    efree(entry);
}

static int field_of(const zend_attribute_arg *argument, uint32_t position)
{
    if (!argument->name) {
        return position < PHP_JOBQ_AS_FIELDS ? (int)position : -1;
    }
    for (int i = 0; i < PHP_JOBQ_AS_FIELDS; i++) {
        if (zend_string_equals_cstr(argument->name, php_jobq_as_words[i],
                                    strlen(php_jobq_as_words[i]))) {
            return i;
        }
    }
    return -1;
}

static zend_result read_attribute(zend_class_entry *ce, zend_attribute *attribute,
                                  php_jobq_as_job *entry)
{
    for (uint32_t i = 0; i < attribute->argc; i++) {
        int field = field_of(&attribute->args[i], i);
        if (field < 0) {
            php_jobq_throw_usage("#[AsJob] of class %s: unknown argument %s", ZSTR_VAL(ce->name),
                                 attribute->args[i].name ? ZSTR_VAL(attribute->args[i].name)
                                                         : "at the end");
            return FAILURE;
        }
        if (zend_get_attribute_value(&entry->fields[field], attribute, i, ce) == FAILURE) {
            ZVAL_UNDEF(&entry->fields[field]);
            return FAILURE;
        }
    }
    if (Z_TYPE(entry->fields[PHP_JOBQ_AS_NAME]) != IS_STRING) {
        php_jobq_throw_usage("#[AsJob] of class %s: a name is needed", ZSTR_VAL(ce->name));
        return FAILURE;
    }
    zval *version = &entry->fields[PHP_JOBQ_AS_VERSION],
         *unique = &entry->fields[PHP_JOBQ_AS_UNIQUE];
    if ((Z_TYPE_P(version) != IS_UNDEF && Z_TYPE_P(version) != IS_LONG) ||
        (Z_TYPE_P(unique) > IS_NULL && Z_TYPE_P(unique) != IS_STRING)) {
        php_jobq_throw_usage(
            "#[AsJob] of class %s: version is an int, unique the name of a constructor parameter",
            ZSTR_VAL(ce->name));
        return FAILURE;
    }
    return SUCCESS;
}

const php_jobq_as_job *php_jobq_as_job_of(zend_class_entry *ce)
{
    php_jobq_as_job *entry = JQG(as_jobs) ? zend_hash_find_ptr(JQG(as_jobs), ce->name) : NULL;
    if (entry) {
        return entry;
    }
    zend_attribute *attribute = ce->attributes
                                    ? zend_get_attribute_str(ce->attributes, "jobqueue\\asjob",
                                                             sizeof("jobqueue\\asjob") - 1)
                                    : NULL;
    if (!attribute) {
        php_jobq_throw_usage("class %s is no job: it has no attribute #[JobQueue\\AsJob]",
                             ZSTR_VAL(ce->name));
        return NULL;
    }
    zval holder;
    entry = ecalloc(1, sizeof(*entry));
    ZVAL_PTR(&holder, entry);
    if (read_attribute(ce, attribute, entry) == FAILURE) {
        free_entry(&holder);
        return NULL;
    }
    if (!JQG(as_jobs)) {
        ALLOC_HASHTABLE(JQG(as_jobs));
        zend_hash_init(JQG(as_jobs), 8, NULL, free_entry, 0);
    }
    zend_hash_update(JQG(as_jobs), ce->name, &holder);
    return entry;
}

/* ---- from the object to a message ------------------------------------------------------------ */

/* The property that holds a constructor parameter, whatever its visibility; NULL: thrown. */
static zval *property_of(zend_object *object, zend_string *name, zend_string *path)
{
    zend_class_entry *scope = object->ce->constructor->common.scope;
    zend_property_info *info = zend_hash_find_ptr(&scope->properties_info, name);
    if (!info || (info->flags & ZEND_ACC_STATIC)) {
        php_jobq_throw_payload(path,
                               "%s: class %s has no property for its constructor parameter $%s",
                               ZSTR_VAL(path), ZSTR_VAL(object->ce->name), ZSTR_VAL(name));
        return NULL;
    }
    zval *value = OBJ_PROP(object, info->offset);
    ZVAL_DEREF(value);
    if (Z_TYPE_P(value) == IS_UNDEF) {
        php_jobq_throw_payload(path, "%s: the property has no value", ZSTR_VAL(path));
        return NULL;
    }
    return value;
}

static zend_result write_parameter(jobq_writer *w, zend_object *object, zend_string *name)
{
    zend_string *path = strpprintf(0, "payload.%s", ZSTR_VAL(name));
    zval *value = property_of(object, name, path);
    zend_string_release(path);
    return value ? php_jobq_encode_member(w, name, value) : FAILURE;
}

static zend_result write_payload(jobq_message *m, zend_object *object)
{
    const zend_function *constructor = object->ce->constructor;
    uint32_t n =
        constructor && constructor->type == ZEND_USER_FUNCTION ? constructor->common.num_args : 0;
    jobq_writer *w = jobq_message_payload(m);
    if (constructor && (constructor->common.fn_flags & ZEND_ACC_VARIADIC)) {
        php_jobq_throw_usage(
            "class %s: the constructor of a job class cannot take a variadic parameter",
            ZSTR_VAL(object->ce->name));
        return FAILURE;
    }
    if (jobq_writer_map(w, n) < 0) {
        php_jobq_throw_last();
        return FAILURE;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (write_parameter(w, object, constructor->op_array.arg_info[i].name) == FAILURE) {
            return FAILURE;
        }
    }
    return SUCCESS;
}

/* The constructor's property of that name, when it can be a key. NULL: an exception is thrown. */
static zval *unique_value(zend_object *object, zend_string *parameter)
{
    zval *value = object->ce->constructor ? property_of(object, parameter, parameter) : NULL;
    if (value && (Z_TYPE_P(value) == IS_STRING || Z_TYPE_P(value) == IS_LONG)) {
        return value;
    }
    if (!EG(exception)) {
        php_jobq_throw_usage("#[AsJob] of class %s: unique: $%s must be a constructor "
                             "parameter that holds a string or an int",
                             ZSTR_VAL(object->ce->name), ZSTR_VAL(parameter));
    }
    return NULL;
}

/* The key is "NAME:VALUE": the 17th invoice and the 17th customer are not the same job. */
static zend_result set_unique(jobq_message *m, zend_object *object, const php_jobq_as_job *entry)
{
    const zval *name = &entry->fields[PHP_JOBQ_AS_NAME];
    const zval *parameter = &entry->fields[PHP_JOBQ_AS_UNIQUE];
    if (Z_TYPE_P(parameter) != IS_STRING) {
        return SUCCESS;
    }
    zval *value = unique_value(object, Z_STR_P(parameter));
    if (!value) {
        return FAILURE;
    }
    zend_string *text = zval_get_string(value);
    zend_string *key = zend_string_concat3(Z_STRVAL_P(name), Z_STRLEN_P(name), ":", 1,
                                           ZSTR_VAL(text), ZSTR_LEN(text));
    int rc = jobq_conf_set(jobq_message_options(m), "unique", ZSTR_VAL(key), ZSTR_LEN(key));
    zend_string_release(text);
    zend_string_release(key);
    if (rc < 0) {
        php_jobq_throw_last();
        return FAILURE;
    }
    return SUCCESS;
}

zend_result php_jobq_as_job_fill(jobq_message *m, zend_object *object)
{
    const php_jobq_as_job *entry = php_jobq_as_job_of(object->ce);
    if (!entry) {
        return FAILURE;
    }
    const zval *name = &entry->fields[PHP_JOBQ_AS_NAME];
    if (jobq_message_set_name(m, Z_STRVAL_P(name), Z_STRLEN_P(name)) < 0) {
        php_jobq_throw_last();
        return FAILURE;
    }
    for (size_t i = 0; i < sizeof(fixed_at_push) / sizeof(fixed_at_push[0]); i++) {
        zval value;
        ZVAL_COPY_VALUE(&value, &entry->fields[fixed_at_push[i]]);
        if (Z_TYPE(value) > IS_NULL &&
            php_jobq_conf_set(jobq_message_options(m), php_jobq_as_words[fixed_at_push[i]],
                              &value) == FAILURE) {
            return FAILURE;
        }
    }
    return set_unique(m, object, entry) == FAILURE ? FAILURE : write_payload(m, object);
}

void php_jobq_register_as_job(void)
{
    php_jobq_ce_as_job = register_class_JobQueue_AsJob();
    /* 8.2's stubs cannot say #[Attribute(Attribute::TARGET_CLASS)] */
    zend_internal_attribute_register(php_jobq_ce_as_job, ZEND_ATTRIBUTE_TARGET_CLASS);
}
