/* This is a generated file, edit the .stub.php file instead.
 * Stub hash: df5ec2546b95ee9317c13c1056001cc81ccf6fc4 */

ZEND_BEGIN_ARG_INFO_EX(arginfo_class_JobQueue_Bytes___construct, 0, 0, 1)
	ZEND_ARG_TYPE_INFO(0, value, IS_STRING, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_JobQueue_Bytes___toString, 0, 0, IS_STRING, 0)
ZEND_END_ARG_INFO()


ZEND_METHOD(JobQueue_Bytes, __construct);
ZEND_METHOD(JobQueue_Bytes, __toString);


static const zend_function_entry class_JobQueue_Bytes_methods[] = {
	ZEND_ME(JobQueue_Bytes, __construct, arginfo_class_JobQueue_Bytes___construct, ZEND_ACC_PUBLIC)
	ZEND_ME(JobQueue_Bytes, __toString, arginfo_class_JobQueue_Bytes___toString, ZEND_ACC_PUBLIC)
	ZEND_FE_END
};

static zend_class_entry *register_class_JobQueue_Bytes(zend_class_entry *class_entry_Stringable)
{
	zend_class_entry ce, *class_entry;

	INIT_NS_CLASS_ENTRY(ce, "JobQueue", "Bytes", class_JobQueue_Bytes_methods);
	class_entry = zend_register_internal_class_ex(&ce, NULL);
	class_entry->ce_flags |= ZEND_ACC_FINAL|ZEND_ACC_NO_DYNAMIC_PROPERTIES;
	zend_class_implements(class_entry, 1, class_entry_Stringable);

	zval property_value_default_value;
	ZVAL_UNDEF(&property_value_default_value);
	zend_string *property_value_name = zend_string_init("value", sizeof("value") - 1, 1);
	zend_declare_typed_property(class_entry, property_value_name, &property_value_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_STRING));
	zend_string_release(property_value_name);

	return class_entry;
}
