/* This is a generated file, edit the .stub.php file instead.
 * Stub hash: 2106a9e550015b5b2afc7e834267db2e03051cb8 */

ZEND_BEGIN_ARG_INFO_EX(arginfo_class_JobQueue_Queue___construct, 0, 0, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, dsn, IS_STRING, 1, "null")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, options, IS_ARRAY, 0, "[]")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_JobQueue_Queue_push, 0, 1, IS_STRING, 0)
	ZEND_ARG_TYPE_MASK(0, job, MAY_BE_STRING|MAY_BE_OBJECT, NULL)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, payload, IS_MIXED, 0, "null")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, queue, IS_STRING, 1, "null")
	ZEND_ARG_TYPE_MASK(0, delay, MAY_BE_LONG|MAY_BE_DOUBLE|MAY_BE_NULL, "null")
	ZEND_ARG_OBJ_INFO_WITH_DEFAULT_VALUE(0, at, DateTimeInterface, 1, "null")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, priority, IS_LONG, 1, "null")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, id, IS_STRING, 1, "null")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, version, IS_LONG, 1, "null")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, unique, IS_STRING, 1, "null")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, tries, IS_LONG, 1, "null")
	ZEND_ARG_TYPE_MASK(0, timeout, MAY_BE_LONG|MAY_BE_DOUBLE|MAY_BE_NULL, "null")
	ZEND_ARG_TYPE_MASK(0, backoff, MAY_BE_LONG|MAY_BE_DOUBLE|MAY_BE_ARRAY|MAY_BE_STRING|MAY_BE_NULL, "null")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, context, IS_ARRAY, 0, "[]")
	ZEND_ARG_VARIADIC_TYPE_INFO(0, options, IS_MIXED, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_JobQueue_Queue_pushStatement, 0, 1, IS_ARRAY, 0)
	ZEND_ARG_TYPE_MASK(0, job, MAY_BE_STRING|MAY_BE_OBJECT, NULL)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, payload, IS_MIXED, 0, "null")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, queue, IS_STRING, 1, "null")
	ZEND_ARG_TYPE_MASK(0, delay, MAY_BE_LONG|MAY_BE_DOUBLE|MAY_BE_NULL, "null")
	ZEND_ARG_OBJ_INFO_WITH_DEFAULT_VALUE(0, at, DateTimeInterface, 1, "null")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, priority, IS_LONG, 1, "null")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, id, IS_STRING, 1, "null")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, version, IS_LONG, 1, "null")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, unique, IS_STRING, 1, "null")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, tries, IS_LONG, 1, "null")
	ZEND_ARG_TYPE_MASK(0, timeout, MAY_BE_LONG|MAY_BE_DOUBLE|MAY_BE_NULL, "null")
	ZEND_ARG_TYPE_MASK(0, backoff, MAY_BE_LONG|MAY_BE_DOUBLE|MAY_BE_ARRAY|MAY_BE_STRING|MAY_BE_NULL, "null")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, context, IS_ARRAY, 0, "[]")
	ZEND_ARG_VARIADIC_TYPE_INFO(0, options, IS_MIXED, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_JobQueue_Queue_pushMany, 0, 1, IS_ARRAY, 0)
	ZEND_ARG_OBJ_TYPE_MASK(0, jobs, Traversable, MAY_BE_ARRAY, NULL)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, onChunk, IS_CALLABLE, 1, "null")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_OBJ_INFO_EX(arginfo_class_JobQueue_Queue_reserve, 0, 0, JobQueue\\Job, 1)
	ZEND_ARG_TYPE_MASK(0, queues, MAY_BE_ARRAY|MAY_BE_STRING, "[]")
	ZEND_ARG_TYPE_MASK(0, lease, MAY_BE_LONG|MAY_BE_DOUBLE, "30")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_OBJ_INFO_EX(arginfo_class_JobQueue_Queue_stats, 0, 1, JobQueue\\Stats, 0)
	ZEND_ARG_TYPE_INFO(0, queue, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, minutes, IS_LONG, 0, "60")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_JobQueue_Queue_allStats, 0, 0, IS_ARRAY, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, minutes, IS_LONG, 0, "0")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_JobQueue_Queue_counters, 0, 0, IS_ARRAY, 0)
ZEND_END_ARG_INFO()

#define arginfo_class_JobQueue_Queue_queues arginfo_class_JobQueue_Queue_counters

ZEND_BEGIN_ARG_WITH_RETURN_OBJ_INFO_EX(arginfo_class_JobQueue_Queue_find, 0, 1, JobQueue\\JobInfo, 1)
	ZEND_ARG_TYPE_INFO(0, id, IS_STRING, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_JobQueue_Queue_wait, 0, 2, IS_MIXED, 0)
	ZEND_ARG_TYPE_INFO(0, id, IS_STRING, 0)
	ZEND_ARG_TYPE_MASK(0, timeout, MAY_BE_LONG|MAY_BE_DOUBLE, NULL)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_JobQueue_Queue_jobs, 0, 2, IS_ARRAY, 0)
	ZEND_ARG_TYPE_INFO(0, queue, IS_STRING, 0)
	ZEND_ARG_OBJ_INFO(0, state, JobQueue\\State, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, limit, IS_LONG, 0, "50")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, after, IS_STRING, 1, "null")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_JobQueue_Queue_dead, 0, 0, IS_ARRAY, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, queue, IS_STRING, 1, "null")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, name, IS_STRING, 1, "null")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, reason, IS_STRING, 1, "null")
	ZEND_ARG_TYPE_MASK(0, olderThan, MAY_BE_LONG|MAY_BE_DOUBLE|MAY_BE_NULL, "null")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, limit, IS_LONG, 0, "50")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, after, IS_STRING, 1, "null")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_JobQueue_Queue_retry, 0, 0, IS_LONG, 0)
	ZEND_ARG_TYPE_MASK(0, ids, MAY_BE_ARRAY|MAY_BE_STRING|MAY_BE_NULL, "null")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, queue, IS_STRING, 1, "null")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, name, IS_STRING, 1, "null")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, reason, IS_STRING, 1, "null")
	ZEND_ARG_TYPE_MASK(0, olderThan, MAY_BE_LONG|MAY_BE_DOUBLE|MAY_BE_NULL, "null")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, all, _IS_BOOL, 0, "false")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, dryRun, _IS_BOOL, 0, "false")
ZEND_END_ARG_INFO()

#define arginfo_class_JobQueue_Queue_forget arginfo_class_JobQueue_Queue_retry

#define arginfo_class_JobQueue_Queue_flush arginfo_class_JobQueue_Queue_retry

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_JobQueue_Queue_prune, 0, 0, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, dryRun, _IS_BOOL, 0, "false")
	ZEND_ARG_TYPE_MASK(0, olderThan, MAY_BE_LONG|MAY_BE_DOUBLE|MAY_BE_NULL, "null")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_JobQueue_Queue_cancel, 0, 1, _IS_BOOL, 0)
	ZEND_ARG_TYPE_INFO(0, id, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, hard, _IS_BOOL, 0, "false")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_JobQueue_Queue_clear, 0, 1, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, queue, IS_STRING, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_JobQueue_Queue_capacity, 0, 2, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO(0, queue, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, n, IS_LONG, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_JobQueue_Queue_pause, 0, 0, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, queue, IS_STRING, 1, "null")
	ZEND_ARG_TYPE_MASK(0, ttl, MAY_BE_LONG|MAY_BE_DOUBLE, "0")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_JobQueue_Queue_resume, 0, 0, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, queue, IS_STRING, 1, "null")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_JobQueue_Queue_restartWorkers, 0, 0, IS_VOID, 0)
ZEND_END_ARG_INFO()

#define arginfo_class_JobQueue_Queue_workers arginfo_class_JobQueue_Queue_counters

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_JobQueue_Queue_doctor, 0, 0, IS_ARRAY, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, audit, _IS_BOOL, 0, "false")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_JobQueue_Queue_on, 0, 2, IS_STATIC, 0)
	ZEND_ARG_TYPE_INFO(0, event, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, listener, IS_CALLABLE, 0)
ZEND_END_ARG_INFO()

#define arginfo_class_JobQueue_Queue_migrate arginfo_class_JobQueue_Queue_restartWorkers

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_JobQueue_Queue_ping, 0, 0, IS_DOUBLE, 0)
ZEND_END_ARG_INFO()


ZEND_METHOD(JobQueue_Queue, __construct);
ZEND_METHOD(JobQueue_Queue, push);
ZEND_METHOD(JobQueue_Queue, pushStatement);
ZEND_METHOD(JobQueue_Queue, pushMany);
ZEND_METHOD(JobQueue_Queue, reserve);
ZEND_METHOD(JobQueue_Queue, stats);
ZEND_METHOD(JobQueue_Queue, allStats);
ZEND_METHOD(JobQueue_Queue, counters);
ZEND_METHOD(JobQueue_Queue, queues);
ZEND_METHOD(JobQueue_Queue, find);
ZEND_METHOD(JobQueue_Queue, wait);
ZEND_METHOD(JobQueue_Queue, jobs);
ZEND_METHOD(JobQueue_Queue, dead);
ZEND_METHOD(JobQueue_Queue, retry);
ZEND_METHOD(JobQueue_Queue, forget);
ZEND_METHOD(JobQueue_Queue, flush);
ZEND_METHOD(JobQueue_Queue, prune);
ZEND_METHOD(JobQueue_Queue, cancel);
ZEND_METHOD(JobQueue_Queue, clear);
ZEND_METHOD(JobQueue_Queue, capacity);
ZEND_METHOD(JobQueue_Queue, pause);
ZEND_METHOD(JobQueue_Queue, resume);
ZEND_METHOD(JobQueue_Queue, restartWorkers);
ZEND_METHOD(JobQueue_Queue, workers);
ZEND_METHOD(JobQueue_Queue, doctor);
ZEND_METHOD(JobQueue_Queue, on);
ZEND_METHOD(JobQueue_Queue, migrate);
ZEND_METHOD(JobQueue_Queue, ping);


static const zend_function_entry class_JobQueue_Queue_methods[] = {
	ZEND_ME(JobQueue_Queue, __construct, arginfo_class_JobQueue_Queue___construct, ZEND_ACC_PUBLIC)
	ZEND_ME(JobQueue_Queue, push, arginfo_class_JobQueue_Queue_push, ZEND_ACC_PUBLIC)
	ZEND_ME(JobQueue_Queue, pushStatement, arginfo_class_JobQueue_Queue_pushStatement, ZEND_ACC_PUBLIC)
	ZEND_ME(JobQueue_Queue, pushMany, arginfo_class_JobQueue_Queue_pushMany, ZEND_ACC_PUBLIC)
	ZEND_ME(JobQueue_Queue, reserve, arginfo_class_JobQueue_Queue_reserve, ZEND_ACC_PUBLIC)
	ZEND_ME(JobQueue_Queue, stats, arginfo_class_JobQueue_Queue_stats, ZEND_ACC_PUBLIC)
	ZEND_ME(JobQueue_Queue, allStats, arginfo_class_JobQueue_Queue_allStats, ZEND_ACC_PUBLIC)
	ZEND_ME(JobQueue_Queue, counters, arginfo_class_JobQueue_Queue_counters, ZEND_ACC_PUBLIC)
	ZEND_ME(JobQueue_Queue, queues, arginfo_class_JobQueue_Queue_queues, ZEND_ACC_PUBLIC)
	ZEND_ME(JobQueue_Queue, find, arginfo_class_JobQueue_Queue_find, ZEND_ACC_PUBLIC)
	ZEND_ME(JobQueue_Queue, wait, arginfo_class_JobQueue_Queue_wait, ZEND_ACC_PUBLIC)
	ZEND_ME(JobQueue_Queue, jobs, arginfo_class_JobQueue_Queue_jobs, ZEND_ACC_PUBLIC)
	ZEND_ME(JobQueue_Queue, dead, arginfo_class_JobQueue_Queue_dead, ZEND_ACC_PUBLIC)
	ZEND_ME(JobQueue_Queue, retry, arginfo_class_JobQueue_Queue_retry, ZEND_ACC_PUBLIC)
	ZEND_ME(JobQueue_Queue, forget, arginfo_class_JobQueue_Queue_forget, ZEND_ACC_PUBLIC)
	ZEND_ME(JobQueue_Queue, flush, arginfo_class_JobQueue_Queue_flush, ZEND_ACC_PUBLIC)
	ZEND_ME(JobQueue_Queue, prune, arginfo_class_JobQueue_Queue_prune, ZEND_ACC_PUBLIC)
	ZEND_ME(JobQueue_Queue, cancel, arginfo_class_JobQueue_Queue_cancel, ZEND_ACC_PUBLIC)
	ZEND_ME(JobQueue_Queue, clear, arginfo_class_JobQueue_Queue_clear, ZEND_ACC_PUBLIC)
	ZEND_ME(JobQueue_Queue, capacity, arginfo_class_JobQueue_Queue_capacity, ZEND_ACC_PUBLIC)
	ZEND_ME(JobQueue_Queue, pause, arginfo_class_JobQueue_Queue_pause, ZEND_ACC_PUBLIC)
	ZEND_ME(JobQueue_Queue, resume, arginfo_class_JobQueue_Queue_resume, ZEND_ACC_PUBLIC)
	ZEND_ME(JobQueue_Queue, restartWorkers, arginfo_class_JobQueue_Queue_restartWorkers, ZEND_ACC_PUBLIC)
	ZEND_ME(JobQueue_Queue, workers, arginfo_class_JobQueue_Queue_workers, ZEND_ACC_PUBLIC)
	ZEND_ME(JobQueue_Queue, doctor, arginfo_class_JobQueue_Queue_doctor, ZEND_ACC_PUBLIC)
	ZEND_ME(JobQueue_Queue, on, arginfo_class_JobQueue_Queue_on, ZEND_ACC_PUBLIC)
	ZEND_ME(JobQueue_Queue, migrate, arginfo_class_JobQueue_Queue_migrate, ZEND_ACC_PUBLIC)
	ZEND_ME(JobQueue_Queue, ping, arginfo_class_JobQueue_Queue_ping, ZEND_ACC_PUBLIC)
	ZEND_FE_END
};

static zend_class_entry *register_class_JobQueue_Queue(void)
{
	zend_class_entry ce, *class_entry;

	INIT_NS_CLASS_ENTRY(ce, "JobQueue", "Queue", class_JobQueue_Queue_methods);
	class_entry = zend_register_internal_class_ex(&ce, NULL);
	class_entry->ce_flags |= ZEND_ACC_FINAL|ZEND_ACC_NO_DYNAMIC_PROPERTIES|ZEND_ACC_NOT_SERIALIZABLE;


	zend_add_parameter_attribute(zend_hash_str_find_ptr(&class_entry->function_table, "__construct", sizeof("__construct") - 1), 0, ZSTR_KNOWN(ZEND_STR_SENSITIVEPARAMETER), 0);

	return class_entry;
}
