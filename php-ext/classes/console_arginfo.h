/* This is a generated file, edit the .stub.php file instead.
 * Stub hash: 7630abb4bd5e6a9f4e9d14103e8968f6e4be8c1f */

ZEND_BEGIN_ARG_INFO_EX(arginfo_class_JobQueue_Console___construct, 0, 0, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_JobQueue_Console_run, 0, 1, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, argv, IS_ARRAY, 0)
	ZEND_ARG_OBJ_INFO_WITH_DEFAULT_VALUE(0, worker, JobQueue\\Worker, 1, "null")
ZEND_END_ARG_INFO()


ZEND_METHOD(JobQueue_Console, __construct);
ZEND_METHOD(JobQueue_Console, run);


static const zend_function_entry class_JobQueue_Console_methods[] = {
	ZEND_ME(JobQueue_Console, __construct, arginfo_class_JobQueue_Console___construct, ZEND_ACC_PRIVATE)
	ZEND_ME(JobQueue_Console, run, arginfo_class_JobQueue_Console_run, ZEND_ACC_PUBLIC|ZEND_ACC_STATIC)
	ZEND_FE_END
};

static zend_class_entry *register_class_JobQueue_Console(void)
{
	zend_class_entry ce, *class_entry;

	INIT_NS_CLASS_ENTRY(ce, "JobQueue", "Console", class_JobQueue_Console_methods);
	class_entry = zend_register_internal_class_ex(&ce, NULL);
	class_entry->ce_flags |= ZEND_ACC_FINAL;

	return class_entry;
}
