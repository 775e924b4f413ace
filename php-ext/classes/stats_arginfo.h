/* This is a generated file, edit the .stub.php file instead.
 * Stub hash: 13ca49bc3c4ab68a2803090931c30579245b5a7b */

ZEND_BEGIN_ARG_INFO_EX(arginfo_class_JobQueue_Stats___construct, 0, 0, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_JobQueue_Stats_jsonSerialize, 0, 0, IS_ARRAY, 0)
ZEND_END_ARG_INFO()


ZEND_METHOD(JobQueue_Stats, __construct);
ZEND_METHOD(JobQueue_Stats, jsonSerialize);


static const zend_function_entry class_JobQueue_Stats_methods[] = {
	ZEND_ME(JobQueue_Stats, __construct, arginfo_class_JobQueue_Stats___construct, ZEND_ACC_PRIVATE)
	ZEND_ME(JobQueue_Stats, jsonSerialize, arginfo_class_JobQueue_Stats_jsonSerialize, ZEND_ACC_PUBLIC)
	ZEND_FE_END
};

static zend_class_entry *register_class_JobQueue_Stats(zend_class_entry *class_entry_JsonSerializable)
{
	zend_class_entry ce, *class_entry;

	INIT_NS_CLASS_ENTRY(ce, "JobQueue", "Stats", class_JobQueue_Stats_methods);
	class_entry = zend_register_internal_class_ex(&ce, NULL);
	class_entry->ce_flags |= ZEND_ACC_FINAL|ZEND_ACC_NO_DYNAMIC_PROPERTIES;
	zend_class_implements(class_entry, 1, class_entry_JsonSerializable);

	zval property_queue_default_value;
	ZVAL_UNDEF(&property_queue_default_value);
	zend_string *property_queue_name = zend_string_init("queue", sizeof("queue") - 1, 1);
	zend_declare_typed_property(class_entry, property_queue_name, &property_queue_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_STRING));
	zend_string_release(property_queue_name);

	zval property_ready_default_value;
	ZVAL_UNDEF(&property_ready_default_value);
	zend_string *property_ready_name = zend_string_init("ready", sizeof("ready") - 1, 1);
	zend_declare_typed_property(class_entry, property_ready_name, &property_ready_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_LONG));
	zend_string_release(property_ready_name);

	zval property_delayed_default_value;
	ZVAL_UNDEF(&property_delayed_default_value);
	zend_string *property_delayed_name = zend_string_init("delayed", sizeof("delayed") - 1, 1);
	zend_declare_typed_property(class_entry, property_delayed_name, &property_delayed_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_LONG));
	zend_string_release(property_delayed_name);

	zval property_reserved_default_value;
	ZVAL_UNDEF(&property_reserved_default_value);
	zend_string *property_reserved_name = zend_string_init("reserved", sizeof("reserved") - 1, 1);
	zend_declare_typed_property(class_entry, property_reserved_name, &property_reserved_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_LONG));
	zend_string_release(property_reserved_name);

	zval property_dead_default_value;
	ZVAL_UNDEF(&property_dead_default_value);
	zend_string *property_dead_name = zend_string_init("dead", sizeof("dead") - 1, 1);
	zend_declare_typed_property(class_entry, property_dead_name, &property_dead_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_LONG));
	zend_string_release(property_dead_name);

	zval property_paused_default_value;
	ZVAL_UNDEF(&property_paused_default_value);
	zend_string *property_paused_name = zend_string_init("paused", sizeof("paused") - 1, 1);
	zend_declare_typed_property(class_entry, property_paused_name, &property_paused_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_BOOL));
	zend_string_release(property_paused_name);

	zval property_backlog_default_value;
	ZVAL_UNDEF(&property_backlog_default_value);
	zend_string *property_backlog_name = zend_string_init("backlog", sizeof("backlog") - 1, 1);
	zend_declare_typed_property(class_entry, property_backlog_name, &property_backlog_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_LONG));
	zend_string_release(property_backlog_name);

	zval property_oldestReadyAge_default_value;
	ZVAL_UNDEF(&property_oldestReadyAge_default_value);
	zend_string *property_oldestReadyAge_name = zend_string_init("oldestReadyAge", sizeof("oldestReadyAge") - 1, 1);
	zend_declare_typed_property(class_entry, property_oldestReadyAge_name, &property_oldestReadyAge_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_DOUBLE|MAY_BE_NULL));
	zend_string_release(property_oldestReadyAge_name);

	zval property_capacity_default_value;
	ZVAL_UNDEF(&property_capacity_default_value);
	zend_string *property_capacity_name = zend_string_init("capacity", sizeof("capacity") - 1, 1);
	zend_declare_typed_property(class_entry, property_capacity_name, &property_capacity_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_LONG));
	zend_string_release(property_capacity_name);

	zval property_perMinute_default_value;
	ZVAL_UNDEF(&property_perMinute_default_value);
	zend_string *property_perMinute_name = zend_string_init("perMinute", sizeof("perMinute") - 1, 1);
	zend_declare_typed_property(class_entry, property_perMinute_name, &property_perMinute_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_ARRAY));
	zend_string_release(property_perMinute_name);

	return class_entry;
}
