/* This is a generated file, edit the .stub.php file instead.
 * Stub hash: 79425e95610ced8bc0f1744a1e4b29e827afaabb */

ZEND_BEGIN_ARG_INFO_EX(arginfo_class_JobQueue_AsJob___construct, 0, 0, 1)
	ZEND_ARG_TYPE_INFO(0, name, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, queue, IS_STRING, 1, "null")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, tries, IS_LONG, 1, "null")
	ZEND_ARG_TYPE_MASK(0, timeout, MAY_BE_LONG|MAY_BE_DOUBLE|MAY_BE_NULL, "null")
	ZEND_ARG_TYPE_MASK(0, backoff, MAY_BE_LONG|MAY_BE_DOUBLE|MAY_BE_ARRAY|MAY_BE_STRING|MAY_BE_NULL, "null")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, priority, IS_LONG, 1, "null")
	ZEND_ARG_TYPE_MASK(0, delay, MAY_BE_LONG|MAY_BE_DOUBLE|MAY_BE_NULL, "null")
	ZEND_ARG_TYPE_MASK(0, expires, MAY_BE_LONG|MAY_BE_DOUBLE|MAY_BE_STRING|MAY_BE_NULL, "null")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, version, IS_LONG, 0, "1")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, unique, IS_STRING, 1, "null")
ZEND_END_ARG_INFO()


ZEND_METHOD(JobQueue_AsJob, __construct);


static const zend_function_entry class_JobQueue_AsJob_methods[] = {
	ZEND_ME(JobQueue_AsJob, __construct, arginfo_class_JobQueue_AsJob___construct, ZEND_ACC_PUBLIC)
	ZEND_FE_END
};

static zend_class_entry *register_class_JobQueue_AsJob(void)
{
	zend_class_entry ce, *class_entry;

	INIT_NS_CLASS_ENTRY(ce, "JobQueue", "AsJob", class_JobQueue_AsJob_methods);
	class_entry = zend_register_internal_class_ex(&ce, NULL);
	class_entry->ce_flags |= ZEND_ACC_FINAL|ZEND_ACC_NO_DYNAMIC_PROPERTIES;

	zval property_name_default_value;
	ZVAL_UNDEF(&property_name_default_value);
	zend_string *property_name_name = zend_string_init("name", sizeof("name") - 1, 1);
	zend_declare_typed_property(class_entry, property_name_name, &property_name_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_STRING));
	zend_string_release(property_name_name);

	zval property_queue_default_value;
	ZVAL_UNDEF(&property_queue_default_value);
	zend_string *property_queue_name = zend_string_init("queue", sizeof("queue") - 1, 1);
	zend_declare_typed_property(class_entry, property_queue_name, &property_queue_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_STRING|MAY_BE_NULL));
	zend_string_release(property_queue_name);

	zval property_tries_default_value;
	ZVAL_UNDEF(&property_tries_default_value);
	zend_string *property_tries_name = zend_string_init("tries", sizeof("tries") - 1, 1);
	zend_declare_typed_property(class_entry, property_tries_name, &property_tries_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_LONG|MAY_BE_NULL));
	zend_string_release(property_tries_name);

	zval property_timeout_default_value;
	ZVAL_UNDEF(&property_timeout_default_value);
	zend_string *property_timeout_name = zend_string_init("timeout", sizeof("timeout") - 1, 1);
	zend_declare_typed_property(class_entry, property_timeout_name, &property_timeout_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_LONG|MAY_BE_DOUBLE|MAY_BE_NULL));
	zend_string_release(property_timeout_name);

	zval property_backoff_default_value;
	ZVAL_UNDEF(&property_backoff_default_value);
	zend_string *property_backoff_name = zend_string_init("backoff", sizeof("backoff") - 1, 1);
	zend_declare_typed_property(class_entry, property_backoff_name, &property_backoff_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_LONG|MAY_BE_DOUBLE|MAY_BE_ARRAY|MAY_BE_STRING|MAY_BE_NULL));
	zend_string_release(property_backoff_name);

	zval property_priority_default_value;
	ZVAL_UNDEF(&property_priority_default_value);
	zend_string *property_priority_name = zend_string_init("priority", sizeof("priority") - 1, 1);
	zend_declare_typed_property(class_entry, property_priority_name, &property_priority_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_LONG|MAY_BE_NULL));
	zend_string_release(property_priority_name);

	zval property_delay_default_value;
	ZVAL_UNDEF(&property_delay_default_value);
	zend_string *property_delay_name = zend_string_init("delay", sizeof("delay") - 1, 1);
	zend_declare_typed_property(class_entry, property_delay_name, &property_delay_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_LONG|MAY_BE_DOUBLE|MAY_BE_NULL));
	zend_string_release(property_delay_name);

	zval property_expires_default_value;
	ZVAL_UNDEF(&property_expires_default_value);
	zend_string *property_expires_name = zend_string_init("expires", sizeof("expires") - 1, 1);
	zend_declare_typed_property(class_entry, property_expires_name, &property_expires_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_LONG|MAY_BE_DOUBLE|MAY_BE_STRING|MAY_BE_NULL));
	zend_string_release(property_expires_name);

	zval property_version_default_value;
	ZVAL_UNDEF(&property_version_default_value);
	zend_string *property_version_name = zend_string_init("version", sizeof("version") - 1, 1);
	zend_declare_typed_property(class_entry, property_version_name, &property_version_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_LONG));
	zend_string_release(property_version_name);

	zval property_unique_default_value;
	ZVAL_UNDEF(&property_unique_default_value);
	zend_string *property_unique_name = zend_string_init("unique", sizeof("unique") - 1, 1);
	zend_declare_typed_property(class_entry, property_unique_name, &property_unique_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_STRING|MAY_BE_NULL));
	zend_string_release(property_unique_name);

	return class_entry;
}
