/* SPDX-License-Identifier: MIT
 *
 * Worker: the object, registration of handlers, and the entrances to run.c.
 */
#include "php_jobqueue.h"

#include "worker_arginfo.h"

zend_class_entry *php_jobq_ce_worker;
static zend_object_handlers object_handlers;

/* ---- the object ------------------------------------------------------------------------------ */

static zend_object *create_worker(zend_class_entry *ce)
{
    php_jobq_worker *worker = zend_object_alloc(sizeof(*worker), ce);
    zend_object_std_init(&worker->std, ce);
    object_properties_init(&worker->std, ce);
    worker->std.handlers = &object_handlers;
    return &worker->std;
}

static void free_worker(zend_object *object)
{
    php_jobq_worker *worker = php_jobq_worker_from(object);
    worker->muted = true;
    jobq_worker_free(worker->worker);
    for (uint32_t i = 0; i < worker->handler_count; i++) {
        zend_string_release(worker->handlers[i].name);
        zval_ptr_dtor(&worker->handlers[i].callable);
        zval_ptr_dtor(&worker->handlers[i].failed);
    }
    if (worker->handlers) {
        efree(worker->handlers);
    }
    zval_ptr_dtor(&worker->resolver);
    zval_ptr_dtor(&worker->middleware);
    zval_ptr_dtor(&worker->listeners);
    zval_ptr_dtor(&worker->output);
    zval_ptr_dtor(&worker->line);
    zval_ptr_dtor(&worker->queue);
    zend_object_std_dtor(object);
}

static HashTable *get_gc(zend_object *object, zval **table, int *n)
{
    php_jobq_worker *worker = php_jobq_worker_from(object);
    zend_get_gc_buffer *buffer = zend_get_gc_buffer_create();
    zend_get_gc_buffer_add_zval(buffer, &worker->queue);
    zend_get_gc_buffer_add_zval(buffer, &worker->resolver);
    zend_get_gc_buffer_add_zval(buffer, &worker->middleware);
    zend_get_gc_buffer_add_zval(buffer, &worker->listeners);
    zend_get_gc_buffer_add_zval(buffer, &worker->output);
    zend_get_gc_buffer_add_zval(buffer, &worker->line);
    for (uint32_t i = 0; i < worker->handler_count; i++) {
        zend_get_gc_buffer_add_zval(buffer, &worker->handlers[i].callable);
        zend_get_gc_buffer_add_zval(buffer, &worker->handlers[i].failed);
    }
    zend_get_gc_buffer_use(buffer, table, n);
    return NULL;
}

php_jobq_worker *php_jobq_worker_get(zval *object)
{
    php_jobq_worker *worker = php_jobq_worker_from(Z_OBJ_P(object));
    if (UNEXPECTED(!worker->worker)) {
        zend_throw_error(NULL, "the Worker's constructor was not called");
        return NULL;
    }
    return worker;
}

static HashTable *named_of(zend_execute_data *execute_data)
{
    return ZEND_CALL_INFO(execute_data) & ZEND_CALL_HAS_EXTRA_NAMED_PARAMS ? EX(extra_named_params)
                                                                           : NULL;
}

/* Options in PHP's spelling; NULL: thrown. */
static jobq_conf *conf_of(int scope, HashTable *options)
{
    jobq_conf *conf = jobq_conf_new(scope, JOBQ_STYLE_CAMEL);
    if (!conf) {
        php_jobq_throw_last();
    } else if (php_jobq_conf_all(conf, options) == FAILURE) {
        jobq_conf_free(conf);
        conf = NULL;
    }
    return conf;
}

/* The same for a worker, whose output may be no text: then it is in *output, else that is
 * undefined. */
static jobq_conf *worker_conf_of(HashTable *options, zval *output)
{
    if (php_jobq_output_take(options, output) == FAILURE) {
        return NULL;
    }
    if (Z_TYPE_P(output) == IS_UNDEF) {
        return conf_of(JOBQ_SCOPE_WORKER, options);
    }
    HashTable *others = zend_array_dup(options);
    zend_hash_str_del(others, ZEND_STRL("output"));
    jobq_conf *conf = conf_of(JOBQ_SCOPE_WORKER, others);
    zend_array_release(others);
    if (!conf) {
        zval_ptr_dtor(output);
        ZVAL_UNDEF(output);
    }
    return conf;
}

ZEND_METHOD(JobQueue_Worker, __construct)
{
    zval *queue, output;
    HashTable *options = named_of(execute_data);
    ZEND_PARSE_PARAMETERS_START(1, 1)
        Z_PARAM_OBJECT_OF_CLASS(queue, php_jobq_ce_queue)
    ZEND_PARSE_PARAMETERS_END();
    php_jobq_worker *worker = php_jobq_worker_from(Z_OBJ_P(ZEND_THIS));
    php_jobq_queue *handle = php_jobq_queue_get(queue);
    if (worker->worker) {
        zend_throw_error(NULL, "the Worker is constructed already");
    }
    jobq_conf *conf = EG(exception) ? NULL : worker_conf_of(options, &output);
    if (!conf) {
        RETURN_THROWS();
    }
    if (jobq_worker_new(handle->queue, conf, &worker->worker) < 0) {
        php_jobq_throw_last();
        zval_ptr_dtor(&output);
    } else {
        ZVAL_COPY_VALUE(&worker->output, &output);
        ZVAL_COPY(&worker->queue, queue);
        php_jobq_run_hooks(worker->worker);
    }
    jobq_conf_free(conf);
}

/* ---- handlers -------------------------------------------------------------------------------- */

static bool has_method(zend_class_entry *ce, const char *name, size_t n)
{
    return zend_hash_str_exists(&ce->function_table, name, n);
}

static bool check_handler(php_jobq_worker *worker, zval *handler)
{
    if (zend_is_callable(handler, 0, NULL)) {
        return true;
    }
    if (Z_TYPE_P(handler) != IS_STRING) {
        zend_argument_type_error(2, "must be of type callable|string, %s given",
                                 zend_zval_type_name(handler));
        return false;
    }
    zend_class_entry *ce = zend_lookup_class(Z_STR_P(handler));
    if (EG(exception)) {
        return false;
    }
    if (!ce && Z_TYPE(worker->resolver) == IS_UNDEF) {
        php_jobq_throw_usage("handler \"%s\" is neither a function nor a class (names of a "
                             "container: set the resolver first)",
                             Z_STRVAL_P(handler));
        return false;
    }
    if (ce && !has_method(ce, ZEND_STRL("handle")) && !has_method(ce, ZEND_STRL("__invoke"))) {
        php_jobq_throw_usage("handler class %s has neither handle() nor __invoke()",
                             ZSTR_VAL(ce->name));
        return false;
    }
    return true;
}

/* Tells the library and remembers it under the same index. Frees the conf. */
static zend_result add_handler(php_jobq_worker *worker, zend_string *name, zend_long version,
                               zval *callable, zend_class_entry *as_job, jobq_conf *conf)
{
    int rc = 0;
    if (version < 1 || version > INT32_MAX) {
        php_jobq_throw_usage("version must be between 1 and 2147483647, " ZEND_LONG_FMT " given",
                             version);
    } else if ((rc = jobq_worker_handle(worker->worker, ZSTR_VAL(name), ZSTR_LEN(name),
                                        (int)version, conf)) < 0) {
        php_jobq_throw_last();
    }
    jobq_conf_free(conf);
    if (EG(exception)) {
        return FAILURE;
    }
    if (worker->handler_count == worker->handler_room) {
        worker->handler_room = worker->handler_room ? worker->handler_room * 2 : 8;
        worker->handlers =
            safe_erealloc(worker->handlers, worker->handler_room, sizeof(*worker->handlers), 0);
    }
    php_jobq_handler *handler = &worker->handlers[worker->handler_count++];
    handler->name = zend_string_copy(name);
    handler->version = version;
    ZVAL_COPY(&handler->callable, callable);
    ZVAL_UNDEF(&handler->failed);
    handler->as_job = as_job;
    return SUCCESS;
}

/* The option `failed`, which is no text; undefined when it is not given. FAILURE: thrown. */
static zend_result take_failed(HashTable *options, zval *failed)
{
    zval *given = options ? zend_hash_str_find(options, ZEND_STRL("failed")) : NULL;
    ZVAL_UNDEF(failed);
    if (!given || Z_TYPE_P(given) == IS_NULL) {
        return SUCCESS;
    }
    ZVAL_DEREF(given);
    if (!zend_is_callable(given, 0, NULL)) {
        php_jobq_throw_type("failed must be of type ?callable, %s given",
                            zend_zval_type_name(given));
        return FAILURE;
    }
    ZVAL_COPY_VALUE(failed, given);
    return SUCCESS;
}

/* The others. NULL: thrown. */
static jobq_conf *handler_conf_of(HashTable *options)
{
    if (!options || !zend_hash_str_exists(options, ZEND_STRL("failed"))) {
        return conf_of(JOBQ_SCOPE_HANDLER, options);
    }
    HashTable *others = zend_array_dup(options);
    zend_hash_str_del(others, ZEND_STRL("failed"));
    jobq_conf *conf = conf_of(JOBQ_SCOPE_HANDLER, others);
    zend_array_release(others);
    return conf;
}

ZEND_METHOD(JobQueue_Worker, handle)
{
    zend_string *name;
    zval *handler, failed;
    zend_long version = 1;
    HashTable *options = named_of(execute_data);
    ZEND_PARSE_PARAMETERS_START(2, 3)
        Z_PARAM_STR(name)
        Z_PARAM_ZVAL(handler)
        Z_PARAM_OPTIONAL
        Z_PARAM_LONG(version)
    ZEND_PARSE_PARAMETERS_END();
    php_jobq_worker *worker = php_jobq_worker_get(ZEND_THIS);
    if (!worker || !check_handler(worker, handler) || take_failed(options, &failed) == FAILURE) {
        RETURN_THROWS();
    }
    if (options && zend_hash_str_exists(options, ZEND_STRL("asyncConcurrency"))) {
        php_jobq_throw_usage(
            "unknown option \"asyncConcurrency\": Python alone has async handlers");
        RETURN_THROWS();
    }
    jobq_conf *conf = handler_conf_of(options);
    if (!conf || add_handler(worker, name, version, handler, NULL, conf) == FAILURE) {
        RETURN_THROWS();
    }
    if (Z_TYPE(failed) != IS_UNDEF) {
        ZVAL_COPY(&worker->handlers[worker->handler_count - 1].failed, &failed);
    }
    RETURN_OBJ_COPY(Z_OBJ_P(ZEND_THIS));
}

/* Read when the job runs, not when it is pushed (rule B2). */
static const int handler_fields[] = {PHP_JOBQ_AS_TRIES, PHP_JOBQ_AS_TIMEOUT, PHP_JOBQ_AS_BACKOFF};

static zend_result register_class(php_jobq_worker *worker, zend_string *class_name)
{
    zend_class_entry *ce = zend_lookup_class(class_name);
    if (!ce) {
        if (!EG(exception)) {
            php_jobq_throw_usage("there is no class \"%s\"", ZSTR_VAL(class_name));
        }
        return FAILURE;
    }
    const php_jobq_as_job *entry = php_jobq_as_job_of(ce);
    if (!entry) {
        return FAILURE;
    }
    if (!has_method(ce, ZEND_STRL("handle"))) {
        php_jobq_throw_usage("job class %s has no method handle()", ZSTR_VAL(ce->name));
        return FAILURE;
    }
    jobq_conf *conf = conf_of(JOBQ_SCOPE_HANDLER, NULL);
    for (size_t i = 0; conf && i < sizeof(handler_fields) / sizeof(handler_fields[0]); i++) {
        zval value;
        ZVAL_COPY_VALUE(&value, &entry->fields[handler_fields[i]]);
        if (Z_TYPE(value) > IS_NULL &&
            php_jobq_conf_set(conf, php_jobq_as_words[handler_fields[i]], &value) == FAILURE) {
            jobq_conf_free(conf);
            return FAILURE;
        }
    }
    zval name;
    const zval *version = &entry->fields[PHP_JOBQ_AS_VERSION];
    ZVAL_STR(&name, ce->name);
    return !conf
               ? FAILURE
               : add_handler(worker, Z_STR(entry->fields[PHP_JOBQ_AS_NAME]),
                             Z_TYPE_P(version) == IS_LONG ? Z_LVAL_P(version) : 1, &name, ce, conf);
}

ZEND_METHOD(JobQueue_Worker, register)
{
    zval *classes;
    uint32_t n;
    ZEND_PARSE_PARAMETERS_START(0, -1)
        Z_PARAM_VARIADIC('*', classes, n)
    ZEND_PARSE_PARAMETERS_END();
    php_jobq_worker *worker = php_jobq_worker_get(ZEND_THIS);
    for (uint32_t i = 0; worker && i < n; i++) {
        if (Z_TYPE(classes[i]) != IS_STRING) {
            zend_argument_type_error(i + 1, "must be of type string, %s given",
                                     zend_zval_type_name(&classes[i]));
        } else {
            register_class(worker, Z_STR(classes[i]));
        }
        if (EG(exception)) {
            RETURN_THROWS();
        }
    }
    RETURN_OBJ_COPY(Z_OBJ_P(ZEND_THIS));
}

ZEND_METHOD(JobQueue_Worker, resolver)
{
    zval *resolver;
    ZEND_PARSE_PARAMETERS_START(1, 1)
        Z_PARAM_ZVAL(resolver)
    ZEND_PARSE_PARAMETERS_END();
    php_jobq_worker *worker = php_jobq_worker_get(ZEND_THIS);
    if (!worker) {
        RETURN_THROWS();
    }
    bool container = Z_TYPE_P(resolver) == IS_OBJECT &&
                     has_method(Z_OBJCE_P(resolver), ZEND_STRL("has")) &&
                     has_method(Z_OBJCE_P(resolver), ZEND_STRL("get"));
    if (!container && !zend_is_callable(resolver, 0, NULL)) {
        zend_argument_type_error(1,
                                 "must be a callable or a container with has() and get(), %s given",
                                 zend_zval_type_name(resolver));
        RETURN_THROWS();
    }
    zval_ptr_dtor(&worker->resolver);
    ZVAL_COPY(&worker->resolver, resolver);
    jobq_worker_set_resolver(worker->worker, true);
    RETURN_OBJ_COPY(Z_OBJ_P(ZEND_THIS));
}

ZEND_METHOD(JobQueue_Worker, middleware)
{
    zval *list;
    uint32_t n;
    ZEND_PARSE_PARAMETERS_START(0, -1)
        Z_PARAM_VARIADIC('*', list, n)
    ZEND_PARSE_PARAMETERS_END();
    php_jobq_worker *worker = php_jobq_worker_get(ZEND_THIS);
    if (!worker) {
        RETURN_THROWS();
    }
    for (uint32_t i = 0; i < n; i++) {
        if (!zend_is_callable(&list[i], 0, NULL)) {
            zend_argument_type_error(i + 1, "must be of type callable, %s given",
                                     zend_zval_type_name(&list[i]));
            RETURN_THROWS();
        }
    }
    if (Z_TYPE(worker->middleware) != IS_ARRAY) {
        array_init(&worker->middleware);
    }
    for (uint32_t i = 0; i < n; i++) {
        Z_TRY_ADDREF(list[i]);
        add_next_index_zval(&worker->middleware, &list[i]);
    }
    RETURN_OBJ_COPY(Z_OBJ_P(ZEND_THIS));
}

ZEND_METHOD(JobQueue_Worker, on)
{
    zend_string *event;
    zend_fcall_info fci;
    zend_fcall_info_cache fcc;
    ZEND_PARSE_PARAMETERS_START(2, 2)
        Z_PARAM_STR(event)
        Z_PARAM_FUNC(fci, fcc)
    ZEND_PARSE_PARAMETERS_END();
    php_jobq_worker *worker = php_jobq_worker_get(ZEND_THIS);
    if (!worker ||
        php_jobq_listen(&worker->listeners, event, &fci.function_name, false) == FAILURE) {
        RETURN_THROWS();
    }
    if (jobq_worker_listen(worker->worker, ZSTR_VAL(event)) < 0) {
        php_jobq_throw_last();
        RETURN_THROWS();
    }
    RETURN_OBJ_COPY(Z_OBJ_P(ZEND_THIS));
}

/* ---- running --------------------------------------------------------------------------------- */

ZEND_METHOD(JobQueue_Worker, run)
{
    HashTable *list = (HashTable *)&zend_empty_array, *options = named_of(execute_data);
    zend_string *text = NULL;
    php_jobq_names names;
    zval output;
    ZEND_PARSE_PARAMETERS_START(0, 1)
        Z_PARAM_OPTIONAL
        Z_PARAM_ARRAY_HT_OR_STR(list, text)
    ZEND_PARSE_PARAMETERS_END();
    php_jobq_worker *worker = php_jobq_worker_get(ZEND_THIS);
    if (!worker || php_jobq_names_read(&names, list, text) == FAILURE) {
        RETURN_THROWS();
    }
    jobq_conf *over = worker_conf_of(options, &output);
    if (over) {
        int code = php_jobq_run(worker, names.names, names.count, over, &output);
        RETVAL_LONG(code);
        zval_ptr_dtor(&output);
    }
    jobq_conf_free(over);
    php_jobq_names_free(&names);
}

ZEND_METHOD(JobQueue_Worker, runNext)
{
    HashTable *list = (HashTable *)&zend_empty_array;
    zend_string *text = NULL;
    php_jobq_names names;
    ZEND_PARSE_PARAMETERS_START(0, 1)
        Z_PARAM_OPTIONAL
        Z_PARAM_ARRAY_HT_OR_STR(list, text)
    ZEND_PARSE_PARAMETERS_END();
    php_jobq_worker *worker = php_jobq_worker_get(ZEND_THIS);
    if (!worker || php_jobq_names_read(&names, list, text) == FAILURE) {
        RETURN_THROWS();
    }
    int found = php_jobq_run_next(worker, names.names, names.count);
    php_jobq_names_free(&names);
    RETURN_BOOL(found > 0);
}

ZEND_METHOD(JobQueue_Worker, stop)
{
    ZEND_PARSE_PARAMETERS_NONE();
    php_jobq_worker *worker = php_jobq_worker_get(ZEND_THIS);
    if (worker) {
        jobq_worker_stop(worker->worker);
    }
}

ZEND_METHOD(JobQueue_Worker, ready)
{
    ZEND_PARSE_PARAMETERS_NONE();
    php_jobq_worker *worker = php_jobq_worker_get(ZEND_THIS);
    RETURN_BOOL(worker && jobq_worker_ready(worker->worker));
}

ZEND_METHOD(JobQueue_Worker, id)
{
    ZEND_PARSE_PARAMETERS_NONE();
    php_jobq_worker *worker = php_jobq_worker_get(ZEND_THIS);
    if (worker) {
        RETURN_STRING(jobq_worker_id(worker->worker));
    }
}

static int64_t counter(const void *worker, size_t i, const char **name)
{
    return jobq_worker_counter(worker, i, name);
}

ZEND_METHOD(JobQueue_Worker, statistics)
{
    ZEND_PARSE_PARAMETERS_NONE();
    php_jobq_worker *worker = php_jobq_worker_get(ZEND_THIS);
    if (!worker) {
        RETURN_THROWS();
    }
    php_jobq_counters(return_value, counter, worker->worker);
}

void php_jobq_register_worker(void)
{
    php_jobq_ce_worker = register_class_JobQueue_Worker();
    php_jobq_ce_worker->create_object = create_worker;
    memcpy(&object_handlers, &std_object_handlers, sizeof(object_handlers));
    object_handlers.offset = offsetof(php_jobq_worker, std);
    object_handlers.free_obj = free_worker;
    object_handlers.get_gc = get_gc;
    object_handlers.clone_obj = NULL;
}
