/* This is a generated file, edit the .stub.php file instead.
 * Stub hash: 969454ddb8584c5862c033f6a7da6403315cf913 */

ZEND_BEGIN_ARG_INFO_EX(arginfo_class_JobQueue_Next___construct, 0, 0, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_JobQueue_Next___invoke, 0, 0, IS_MIXED, 0)
	ZEND_ARG_OBJ_INFO_WITH_DEFAULT_VALUE(0, job, JobQueue\\Job, 1, "null")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, payload, IS_MIXED, 0, "null")
ZEND_END_ARG_INFO()


ZEND_METHOD(JobQueue_Next, __construct);
ZEND_METHOD(JobQueue_Next, __invoke);


static const zend_function_entry class_JobQueue_Next_methods[] = {
	ZEND_ME(JobQueue_Next, __construct, arginfo_class_JobQueue_Next___construct, ZEND_ACC_PRIVATE)
	ZEND_ME(JobQueue_Next, __invoke, arginfo_class_JobQueue_Next___invoke, ZEND_ACC_PUBLIC)
	ZEND_FE_END
};

static zend_class_entry *register_class_JobQueue_Next(void)
{
	zend_class_entry ce, *class_entry;

	INIT_NS_CLASS_ENTRY(ce, "JobQueue", "Next", class_JobQueue_Next_methods);
	class_entry = zend_register_internal_class_ex(&ce, NULL);
	class_entry->ce_flags |= ZEND_ACC_FINAL|ZEND_ACC_NO_DYNAMIC_PROPERTIES|ZEND_ACC_NOT_SERIALIZABLE;

	return class_entry;
}
