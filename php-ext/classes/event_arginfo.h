/* This is a generated file, edit the .stub.php file instead.
 * Stub hash: d883133a7f9021807538b591b4c69929af42cf80 */

ZEND_BEGIN_ARG_INFO_EX(arginfo_class_JobQueue_Event___construct, 0, 0, 0)
ZEND_END_ARG_INFO()


ZEND_METHOD(JobQueue_Event, __construct);


static const zend_function_entry class_JobQueue_Event_methods[] = {
	ZEND_ME(JobQueue_Event, __construct, arginfo_class_JobQueue_Event___construct, ZEND_ACC_PRIVATE)
	ZEND_FE_END
};

static zend_class_entry *register_class_JobQueue_Event(void)
{
	zend_class_entry ce, *class_entry;

	INIT_NS_CLASS_ENTRY(ce, "JobQueue", "Event", class_JobQueue_Event_methods);
	class_entry = zend_register_internal_class_ex(&ce, NULL);
	class_entry->ce_flags |= ZEND_ACC_FINAL|ZEND_ACC_NO_DYNAMIC_PROPERTIES|ZEND_ACC_NOT_SERIALIZABLE;

	zval property_name_default_value;
	ZVAL_UNDEF(&property_name_default_value);
	zend_string *property_name_name = zend_string_init("name", sizeof("name") - 1, 1);
	zend_declare_typed_property(class_entry, property_name_name, &property_name_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_STRING));
	zend_string_release(property_name_name);

	zend_string *property_job_class_JobQueue_Job = zend_string_init("JobQueue\\Job", sizeof("JobQueue\\Job")-1, 1);
	zval property_job_default_value;
	ZVAL_UNDEF(&property_job_default_value);
	zend_string *property_job_name = zend_string_init("job", sizeof("job") - 1, 1);
	zend_declare_typed_property(class_entry, property_job_name, &property_job_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_CLASS(property_job_class_JobQueue_Job, 0, MAY_BE_NULL));
	zend_string_release(property_job_name);

	zval property_queue_default_value;
	ZVAL_UNDEF(&property_queue_default_value);
	zend_string *property_queue_name = zend_string_init("queue", sizeof("queue") - 1, 1);
	zend_declare_typed_property(class_entry, property_queue_name, &property_queue_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_STRING|MAY_BE_NULL));
	zend_string_release(property_queue_name);

	zval property_connection_default_value;
	ZVAL_UNDEF(&property_connection_default_value);
	zend_string *property_connection_name = zend_string_init("connection", sizeof("connection") - 1, 1);
	zend_declare_typed_property(class_entry, property_connection_name, &property_connection_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_STRING));
	zend_string_release(property_connection_name);

	zval property_data_default_value;
	ZVAL_UNDEF(&property_data_default_value);
	zend_string *property_data_name = zend_string_init("data", sizeof("data") - 1, 1);
	zend_declare_typed_property(class_entry, property_data_name, &property_data_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_ARRAY));
	zend_string_release(property_data_name);

	return class_entry;
}
