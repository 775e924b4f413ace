/* This is a generated file, edit the .stub.php file instead.
 * Stub hash: 9fce2e4734bfab30780d226625c879b4da941ca0 */

ZEND_BEGIN_ARG_INFO_EX(arginfo_class_JobQueue_Worker___construct, 0, 0, 1)
	ZEND_ARG_OBJ_INFO(0, queue, JobQueue\\Queue, 0)
	ZEND_ARG_VARIADIC_TYPE_INFO(0, options, IS_MIXED, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_JobQueue_Worker_handle, 0, 2, IS_STATIC, 0)
	ZEND_ARG_TYPE_INFO(0, name, IS_STRING, 0)
	ZEND_ARG_TYPE_MASK(0, handler, MAY_BE_CALLABLE|MAY_BE_STRING, NULL)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, version, IS_LONG, 0, "1")
	ZEND_ARG_VARIADIC_TYPE_INFO(0, options, IS_MIXED, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_JobQueue_Worker_register, 0, 0, IS_STATIC, 0)
	ZEND_ARG_VARIADIC_TYPE_INFO(0, classes, IS_STRING, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_JobQueue_Worker_resolver, 0, 1, IS_STATIC, 0)
	ZEND_ARG_TYPE_MASK(0, resolver, MAY_BE_CALLABLE|MAY_BE_OBJECT, NULL)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_JobQueue_Worker_middleware, 0, 0, IS_STATIC, 0)
	ZEND_ARG_VARIADIC_TYPE_INFO(0, middleware, IS_CALLABLE, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_JobQueue_Worker_on, 0, 2, IS_STATIC, 0)
	ZEND_ARG_TYPE_INFO(0, event, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, listener, IS_CALLABLE, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_JobQueue_Worker_run, 0, 0, IS_LONG, 0)
	ZEND_ARG_TYPE_MASK(0, queues, MAY_BE_ARRAY|MAY_BE_STRING, "[]")
	ZEND_ARG_VARIADIC_TYPE_INFO(0, options, IS_MIXED, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_JobQueue_Worker_runNext, 0, 0, _IS_BOOL, 0)
	ZEND_ARG_TYPE_MASK(0, queues, MAY_BE_ARRAY|MAY_BE_STRING, "[]")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_JobQueue_Worker_stop, 0, 0, IS_VOID, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_JobQueue_Worker_ready, 0, 0, _IS_BOOL, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_JobQueue_Worker_id, 0, 0, IS_STRING, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_JobQueue_Worker_statistics, 0, 0, IS_ARRAY, 0)
ZEND_END_ARG_INFO()


ZEND_METHOD(JobQueue_Worker, __construct);
ZEND_METHOD(JobQueue_Worker, handle);
ZEND_METHOD(JobQueue_Worker, register);
ZEND_METHOD(JobQueue_Worker, resolver);
ZEND_METHOD(JobQueue_Worker, middleware);
ZEND_METHOD(JobQueue_Worker, on);
ZEND_METHOD(JobQueue_Worker, run);
ZEND_METHOD(JobQueue_Worker, runNext);
ZEND_METHOD(JobQueue_Worker, stop);
ZEND_METHOD(JobQueue_Worker, ready);
ZEND_METHOD(JobQueue_Worker, id);
ZEND_METHOD(JobQueue_Worker, statistics);


static const zend_function_entry class_JobQueue_Worker_methods[] = {
	ZEND_ME(JobQueue_Worker, __construct, arginfo_class_JobQueue_Worker___construct, ZEND_ACC_PUBLIC)
	ZEND_ME(JobQueue_Worker, handle, arginfo_class_JobQueue_Worker_handle, ZEND_ACC_PUBLIC)
	ZEND_ME(JobQueue_Worker, register, arginfo_class_JobQueue_Worker_register, ZEND_ACC_PUBLIC)
	ZEND_ME(JobQueue_Worker, resolver, arginfo_class_JobQueue_Worker_resolver, ZEND_ACC_PUBLIC)
	ZEND_ME(JobQueue_Worker, middleware, arginfo_class_JobQueue_Worker_middleware, ZEND_ACC_PUBLIC)
	ZEND_ME(JobQueue_Worker, on, arginfo_class_JobQueue_Worker_on, ZEND_ACC_PUBLIC)
	ZEND_ME(JobQueue_Worker, run, arginfo_class_JobQueue_Worker_run, ZEND_ACC_PUBLIC)
	ZEND_ME(JobQueue_Worker, runNext, arginfo_class_JobQueue_Worker_runNext, ZEND_ACC_PUBLIC)
	ZEND_ME(JobQueue_Worker, stop, arginfo_class_JobQueue_Worker_stop, ZEND_ACC_PUBLIC)
	ZEND_ME(JobQueue_Worker, ready, arginfo_class_JobQueue_Worker_ready, ZEND_ACC_PUBLIC)
	ZEND_ME(JobQueue_Worker, id, arginfo_class_JobQueue_Worker_id, ZEND_ACC_PUBLIC)
	ZEND_ME(JobQueue_Worker, statistics, arginfo_class_JobQueue_Worker_statistics, ZEND_ACC_PUBLIC)
	ZEND_FE_END
};

static zend_class_entry *register_class_JobQueue_Worker(void)
{
	zend_class_entry ce, *class_entry;

	INIT_NS_CLASS_ENTRY(ce, "JobQueue", "Worker", class_JobQueue_Worker_methods);
	class_entry = zend_register_internal_class_ex(&ce, NULL);
	class_entry->ce_flags |= ZEND_ACC_FINAL|ZEND_ACC_NO_DYNAMIC_PROPERTIES|ZEND_ACC_NOT_SERIALIZABLE;

	return class_entry;
}
