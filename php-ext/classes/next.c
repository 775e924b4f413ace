/* SPDX-License-Identifier: MIT
 *
 * What a middleware gets as $next: a Closure bound to a hidden object that knows the place in the
 * chain.
 */
#include "php_jobqueue.h"

#include <zend_closures.h>

#include "next_arginfo.h"

zend_class_entry *php_jobq_ce_next;
static zend_object_handlers handlers;

typedef struct {
    php_jobq_attempt *attempt;
    uint32_t position;
    zval payload, job; /* job: to notice that the attempt is over */
    zend_object std;
} next_object;

static zend_object *create_next(zend_class_entry *ce)
{
    next_object *next = zend_object_alloc(sizeof(*next), ce);
    zend_object_std_init(&next->std, ce);
    object_properties_init(&next->std, ce);
    next->std.handlers = &handlers;
    return &next->std;
}

static void free_next(zend_object *object)
{
    next_object *next = PHP_JOBQ_FROM(next_object, object);
    zval_ptr_dtor(&next->payload);
    zval_ptr_dtor(&next->job);
    zend_object_std_dtor(object);
}

static HashTable *get_gc(zend_object *object, zval **table, int *n)
{
    next_object *next = PHP_JOBQ_FROM(next_object, object);
    zend_get_gc_buffer *buffer = zend_get_gc_buffer_create();
    zend_get_gc_buffer_add_zval(buffer, &next->payload);
    zend_get_gc_buffer_add_zval(buffer, &next->job);
    zend_get_gc_buffer_use(buffer, table, n);
    return NULL;
}

void php_jobq_next_make(zval *out, php_jobq_attempt *a, uint32_t position, zval *payload)
{
    zval self;
    object_init_ex(&self, php_jobq_ce_next);
    next_object *next = PHP_JOBQ_FROM(next_object, Z_OBJ(self));
    next->attempt = a;
    next->position = position;
    ZVAL_COPY(&next->payload, payload);
    ZVAL_COPY(&next->job, &a->object);
    zend_function *invoke = zend_hash_str_find_ptr(&php_jobq_ce_next->function_table, "__invoke",
                                                   sizeof("__invoke") - 1);
    zend_create_fake_closure(out, invoke, php_jobq_ce_next, php_jobq_ce_next, &self);
    zval_ptr_dtor(&self);
}

ZEND_METHOD(JobQueue_Next, __construct)
{
    ZEND_PARSE_PARAMETERS_NONE();
}

ZEND_METHOD(JobQueue_Next, __invoke)
{
    zval *job = NULL, *payload = NULL;
    ZEND_PARSE_PARAMETERS_START(0, 2)
        Z_PARAM_OPTIONAL
        Z_PARAM_OBJECT_OF_CLASS_OR_NULL(job, php_jobq_ce_job)
        Z_PARAM_ZVAL(payload)
    ZEND_PARSE_PARAMETERS_END();
    next_object *next = PHP_JOBQ_FROM(next_object, Z_OBJ_P(ZEND_THIS));
    if (Z_TYPE(next->job) != IS_OBJECT || !php_jobq_job_from(Z_OBJ(next->job))->job) {
        php_jobq_throw_logic("$next() was called after the job had ended");
        RETURN_THROWS();
    }
    php_jobq_chain_run(next->attempt, next->position, payload ? payload : &next->payload,
                       return_value);
}

void php_jobq_register_next(void)
{
    php_jobq_ce_next = register_class_JobQueue_Next();
    php_jobq_ce_next->create_object = create_next;
    memcpy(&handlers, &std_object_handlers, sizeof(handlers));
    handlers.offset = offsetof(next_object, std);
    handlers.free_obj = free_next;
    handlers.get_gc = get_gc;
    handlers.clone_obj = NULL;
}
