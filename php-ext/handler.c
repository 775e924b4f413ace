/* SPDX-License-Identifier: MIT
 *
 * From a job's name to the callable that runs it, and calling it inside the middleware.
 */
#include "php_jobqueue.h"

/* ---- the resolver ---------------------------------------------------------------------------- */

static zend_result call_method(zval *object, const char *method, size_t n, zval *argument,
                               zval *result)
{
    zend_function *function = zend_hash_str_find_ptr(&Z_OBJCE_P(object)->function_table, method, n);
    if (!function) {
        php_jobq_throw_type("the resolver %s has no method %s()", ZSTR_VAL(Z_OBJCE_P(object)->name),
                            method);
        return FAILURE;
    }
    zend_call_known_function(function, Z_OBJ_P(object), Z_OBJCE_P(object), result, 1, argument,
                             NULL);
    return EG(exception) ? FAILURE : SUCCESS;
}

/* A callable is asked, a container (PSR-11) looked into; null = it knows nothing of that name. */
static zend_result ask_resolver(php_jobq_worker *worker, zend_string *id, zval *out)
{
    zval name, has;
    ZVAL_NULL(out);
    ZVAL_STR(&name, id);
    if (Z_TYPE(worker->resolver) == IS_UNDEF) {
        return SUCCESS;
    }
    if (zend_is_callable(&worker->resolver, 0, NULL)) {
        return php_jobq_call(&worker->resolver, 1, &name, out);
    }
    ZVAL_UNDEF(&has);
    if (call_method(&worker->resolver, "has", 3, &name, &has) == FAILURE) {
        return FAILURE;
    }
    bool known = zend_is_true(&has);
    zval_ptr_dtor(&has);
    return known ? call_method(&worker->resolver, "get", 3, &name, out) : SUCCESS;
}

/* ---- finding --------------------------------------------------------------------------------- */

zend_result php_jobq_handler_find(php_jobq_attempt *a)
{
    php_jobq_worker *worker = a->worker;
    int index = jobq_worker_find(worker->worker, a->job);
    if (index >= 0 && (uint32_t)index < worker->handler_count) {
        ZVAL_COPY(&a->spec, &worker->handlers[index].callable);
        a->as_job = worker->handlers[index].as_job;
        a->has_handler = true;
        return SUCCESS;
    }
    size_t n;
    const char *name = jobq_job_name(a->job, &n);
    zend_string *id = zend_string_init(name, n, 0);
    zend_result result = ask_resolver(worker, id, &a->spec);
    zend_string_release(id);
    a->has_handler = result == SUCCESS && Z_TYPE(a->spec) != IS_NULL;
    return result;
}

/* ---- building -------------------------------------------------------------------------------- */

static zend_result make_object(zend_string *name, zval *out)
{
    zend_class_entry *ce = zend_lookup_class(name);
    if (!ce) {
        if (!EG(exception)) {
            php_jobq_throw_usage("handler \"%s\": no such function or class", ZSTR_VAL(name));
        }
        return FAILURE;
    }
    if (object_init_ex(out, ce) == FAILURE) {
        return FAILURE;
    }
    if (ce->constructor) {
        zend_call_known_function(ce->constructor, Z_OBJ_P(out), ce, NULL, 0, NULL, NULL);
        if (EG(exception)) {
            zend_object_store_ctor_failed(Z_OBJ_P(out));
            return FAILURE;
        }
    }
    return SUCCESS;
}

/* [object, 'handle'], or the object itself when it can be called. */
static zend_result callable_of(zval *object, zval *out)
{
    if (zend_hash_str_exists(&Z_OBJCE_P(object)->function_table, "handle", sizeof("handle") - 1)) {
        array_init_size(out, 2);
        Z_ADDREF_P(object);
        add_next_index_zval(out, object);
        add_next_index_string(out, "handle");
        return SUCCESS;
    }
    if (zend_is_callable(object, 0, NULL)) {
        ZVAL_COPY(out, object);
        return SUCCESS;
    }
    php_jobq_throw_type("the handler %s has neither handle() nor __invoke()",
                        ZSTR_VAL(Z_OBJCE_P(object)->name));
    return FAILURE;
}

/* A class's name: the resolver's object, else a new one. */
static zend_result build_named(php_jobq_attempt *a)
{
    zval object;
    if (ask_resolver(a->worker, Z_STR(a->spec), &object) == FAILURE) {
        return FAILURE;
    }
    if (Z_TYPE(object) != IS_OBJECT) {
        zval_ptr_dtor(&object);
        ZVAL_UNDEF(&object);
        if (make_object(Z_STR(a->spec), &object) == FAILURE) {
            zval_ptr_dtor(&object);
            return FAILURE;
        }
    }
    zend_result result = callable_of(&object, &a->handler);
    zval_ptr_dtor(&object);
    return result;
}

static zend_result build_as_job(php_jobq_attempt *a)
{
    zval object;
    if (php_jobq_as_job_build(a->as_job, &a->payload, &object, &a->misfit) == FAILURE) {
        return FAILURE;
    }
    zend_result result = callable_of(&object, &a->handler);
    zval_ptr_dtor(&object);
    return result;
}

zend_result php_jobq_handler_build(php_jobq_attempt *a)
{
    if (a->as_job) {
        return build_as_job(a);
    }
    if (zend_is_callable(&a->spec, 0, NULL)) {
        ZVAL_COPY(&a->handler, &a->spec);
        return SUCCESS;
    }
    switch (Z_TYPE(a->spec)) {
    case IS_STRING:
        return build_named(a);
    case IS_OBJECT:
        return callable_of(&a->spec, &a->handler);
    default:
        php_jobq_throw_type("a handler is a callable, an object or a class's name, %s given",
                            zend_zval_type_name(&a->spec));
        return FAILURE;
    }
}

/* ---- calling --------------------------------------------------------------------------------- */

/* A job object's handle() gets only what it declares. */
static uint32_t wanted(const php_jobq_attempt *a)
{
    if (!a->as_job) {
        return 2;
    }
    const zend_function *handle =
        zend_hash_str_find_ptr(&a->as_job->function_table, "handle", sizeof("handle") - 1);
    return !handle || (handle->common.fn_flags & ZEND_ACC_VARIADIC) || handle->common.num_args > 2
               ? 2
               : handle->common.num_args;
}

zend_result php_jobq_chain_run(php_jobq_attempt *a, uint32_t position, zval *payload, zval *result)
{
    zval arguments[3];
    zval *list = &a->worker->middleware;
    zval *middleware =
        Z_TYPE_P(list) == IS_ARRAY ? zend_hash_index_find(Z_ARRVAL_P(list), position) : NULL;
    ZVAL_COPY_VALUE(&arguments[0], &a->object);
    ZVAL_COPY_VALUE(&arguments[1], payload);
    if (!middleware) {
        return php_jobq_call(&a->handler, wanted(a), arguments, result);
    }
    php_jobq_next_make(&arguments[2], a, position + 1, payload);
    zend_result rc = php_jobq_call(middleware, 3, arguments, result);
    zval_ptr_dtor(&arguments[2]);
    return rc;
}

zend_result php_jobq_handler_run(php_jobq_attempt *a)
{
    zval result;
    ZVAL_UNDEF(&result);
    zend_result rc = php_jobq_chain_run(a, 0, &a->payload, &result);
    if (rc == SUCCESS && !EG(exception) && Z_TYPE(result) > IS_NULL) {
        php_jobq_result_keep(a->job, &result);
    }
    zval_ptr_dtor(&result);
    return rc;
}
