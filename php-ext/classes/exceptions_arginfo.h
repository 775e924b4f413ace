/* This is a generated file, edit the .stub.php file instead.
 * Stub hash: bf37234dbd135de2ba9193e02da7fe9266663c16 */

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_JobQueue_QueueException_isRetryable, 0, 0, _IS_BOOL, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_INFO_EX(arginfo_class_JobQueue_RetryAfter___construct, 0, 0, 1)
	ZEND_ARG_TYPE_MASK(0, seconds, MAY_BE_LONG|MAY_BE_DOUBLE, NULL)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, message, IS_STRING, 0, "\"\"")
	ZEND_ARG_OBJ_INFO_WITH_DEFAULT_VALUE(0, previous, Throwable, 1, "null")
ZEND_END_ARG_INFO()


ZEND_METHOD(JobQueue_QueueException, isRetryable);
ZEND_METHOD(JobQueue_RetryAfter, __construct);


static const zend_function_entry class_JobQueue_ExceptionInterface_methods[] = {
	ZEND_FE_END
};


static const zend_function_entry class_JobQueue_NotRetryable_methods[] = {
	ZEND_FE_END
};


static const zend_function_entry class_JobQueue_QueueException_methods[] = {
	ZEND_ME(JobQueue_QueueException, isRetryable, arginfo_class_JobQueue_QueueException_isRetryable, ZEND_ACC_PUBLIC)
	ZEND_FE_END
};


static const zend_function_entry class_JobQueue_ConnectionException_methods[] = {
	ZEND_FE_END
};


static const zend_function_entry class_JobQueue_OutcomeUnknown_methods[] = {
	ZEND_FE_END
};


static const zend_function_entry class_JobQueue_DuplicateJob_methods[] = {
	ZEND_FE_END
};


static const zend_function_entry class_JobQueue_QueueFull_methods[] = {
	ZEND_FE_END
};


static const zend_function_entry class_JobQueue_GuardRefused_methods[] = {
	ZEND_FE_END
};


static const zend_function_entry class_JobQueue_JobDead_methods[] = {
	ZEND_FE_END
};


static const zend_function_entry class_JobQueue_WaitTimeout_methods[] = {
	ZEND_FE_END
};


static const zend_function_entry class_JobQueue_LeaseLost_methods[] = {
	ZEND_FE_END
};


static const zend_function_entry class_JobQueue_PayloadException_methods[] = {
	ZEND_FE_END
};


static const zend_function_entry class_JobQueue_NotFound_methods[] = {
	ZEND_FE_END
};


static const zend_function_entry class_JobQueue_TimeoutException_methods[] = {
	ZEND_FE_END
};


static const zend_function_entry class_JobQueue_StopException_methods[] = {
	ZEND_FE_END
};


static const zend_function_entry class_JobQueue_RecordedException_methods[] = {
	ZEND_FE_END
};


static const zend_function_entry class_JobQueue_RetryAfter_methods[] = {
	ZEND_ME(JobQueue_RetryAfter, __construct, arginfo_class_JobQueue_RetryAfter___construct, ZEND_ACC_PUBLIC)
	ZEND_FE_END
};

static zend_class_entry *register_class_JobQueue_ExceptionInterface(zend_class_entry *class_entry_Throwable)
{
	zend_class_entry ce, *class_entry;

	INIT_NS_CLASS_ENTRY(ce, "JobQueue", "ExceptionInterface", class_JobQueue_ExceptionInterface_methods);
	class_entry = zend_register_internal_interface(&ce);
	zend_class_implements(class_entry, 1, class_entry_Throwable);

	return class_entry;
}

static zend_class_entry *register_class_JobQueue_NotRetryable(void)
{
	zend_class_entry ce, *class_entry;

	INIT_NS_CLASS_ENTRY(ce, "JobQueue", "NotRetryable", class_JobQueue_NotRetryable_methods);
	class_entry = zend_register_internal_interface(&ce);

	return class_entry;
}

static zend_class_entry *register_class_JobQueue_QueueException(zend_class_entry *class_entry_RuntimeException, zend_class_entry *class_entry_JobQueue_ExceptionInterface)
{
	zend_class_entry ce, *class_entry;

	INIT_NS_CLASS_ENTRY(ce, "JobQueue", "QueueException", class_JobQueue_QueueException_methods);
	class_entry = zend_register_internal_class_ex(&ce, class_entry_RuntimeException);
	zend_class_implements(class_entry, 1, class_entry_JobQueue_ExceptionInterface);

	zval property_errorCode_default_value;
	zend_string *property_errorCode_default_value_str = zend_string_init("queue", strlen("queue"), 1);
	ZVAL_STR(&property_errorCode_default_value, property_errorCode_default_value_str);
	zend_string *property_errorCode_name = zend_string_init("errorCode", sizeof("errorCode") - 1, 1);
	zend_declare_typed_property(class_entry, property_errorCode_name, &property_errorCode_default_value, ZEND_ACC_PUBLIC, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_STRING));
	zend_string_release(property_errorCode_name);

	zval property_retryable_default_value;
	ZVAL_FALSE(&property_retryable_default_value);
	zend_string *property_retryable_name = zend_string_init("retryable", sizeof("retryable") - 1, 1);
	zend_declare_typed_property(class_entry, property_retryable_name, &property_retryable_default_value, ZEND_ACC_PROTECTED, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_BOOL));
	zend_string_release(property_retryable_name);

	return class_entry;
}

static zend_class_entry *register_class_JobQueue_ConnectionException(zend_class_entry *class_entry_JobQueue_QueueException)
{
	zend_class_entry ce, *class_entry;

	INIT_NS_CLASS_ENTRY(ce, "JobQueue", "ConnectionException", class_JobQueue_ConnectionException_methods);
	class_entry = zend_register_internal_class_ex(&ce, class_entry_JobQueue_QueueException);
	class_entry->ce_flags |= ZEND_ACC_FINAL;

	return class_entry;
}

static zend_class_entry *register_class_JobQueue_OutcomeUnknown(zend_class_entry *class_entry_JobQueue_QueueException)
{
	zend_class_entry ce, *class_entry;

	INIT_NS_CLASS_ENTRY(ce, "JobQueue", "OutcomeUnknown", class_JobQueue_OutcomeUnknown_methods);
	class_entry = zend_register_internal_class_ex(&ce, class_entry_JobQueue_QueueException);
	class_entry->ce_flags |= ZEND_ACC_FINAL;

	zval property_id_default_value;
	ZVAL_EMPTY_STRING(&property_id_default_value);
	zend_string *property_id_name = zend_string_init("id", sizeof("id") - 1, 1);
	zend_declare_typed_property(class_entry, property_id_name, &property_id_default_value, ZEND_ACC_PUBLIC, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_STRING));
	zend_string_release(property_id_name);

	return class_entry;
}

static zend_class_entry *register_class_JobQueue_DuplicateJob(zend_class_entry *class_entry_JobQueue_QueueException)
{
	zend_class_entry ce, *class_entry;

	INIT_NS_CLASS_ENTRY(ce, "JobQueue", "DuplicateJob", class_JobQueue_DuplicateJob_methods);
	class_entry = zend_register_internal_class_ex(&ce, class_entry_JobQueue_QueueException);
	class_entry->ce_flags |= ZEND_ACC_FINAL;

	zval property_id_default_value;
	ZVAL_EMPTY_STRING(&property_id_default_value);
	zend_string *property_id_name = zend_string_init("id", sizeof("id") - 1, 1);
	zend_declare_typed_property(class_entry, property_id_name, &property_id_default_value, ZEND_ACC_PUBLIC, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_STRING));
	zend_string_release(property_id_name);

	return class_entry;
}

static zend_class_entry *register_class_JobQueue_QueueFull(zend_class_entry *class_entry_JobQueue_QueueException)
{
	zend_class_entry ce, *class_entry;

	INIT_NS_CLASS_ENTRY(ce, "JobQueue", "QueueFull", class_JobQueue_QueueFull_methods);
	class_entry = zend_register_internal_class_ex(&ce, class_entry_JobQueue_QueueException);
	class_entry->ce_flags |= ZEND_ACC_FINAL;

	zval property_queue_default_value;
	ZVAL_EMPTY_STRING(&property_queue_default_value);
	zend_string *property_queue_name = zend_string_init("queue", sizeof("queue") - 1, 1);
	zend_declare_typed_property(class_entry, property_queue_name, &property_queue_default_value, ZEND_ACC_PUBLIC, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_STRING));
	zend_string_release(property_queue_name);

	zval property_capacity_default_value;
	ZVAL_LONG(&property_capacity_default_value, 0);
	zend_string *property_capacity_name = zend_string_init("capacity", sizeof("capacity") - 1, 1);
	zend_declare_typed_property(class_entry, property_capacity_name, &property_capacity_default_value, ZEND_ACC_PUBLIC, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_LONG));
	zend_string_release(property_capacity_name);

	return class_entry;
}

static zend_class_entry *register_class_JobQueue_GuardRefused(zend_class_entry *class_entry_JobQueue_QueueException)
{
	zend_class_entry ce, *class_entry;

	INIT_NS_CLASS_ENTRY(ce, "JobQueue", "GuardRefused", class_JobQueue_GuardRefused_methods);
	class_entry = zend_register_internal_class_ex(&ce, class_entry_JobQueue_QueueException);
	class_entry->ce_flags |= ZEND_ACC_FINAL;

	return class_entry;
}

static zend_class_entry *register_class_JobQueue_JobDead(zend_class_entry *class_entry_JobQueue_QueueException)
{
	zend_class_entry ce, *class_entry;

	INIT_NS_CLASS_ENTRY(ce, "JobQueue", "JobDead", class_JobQueue_JobDead_methods);
	class_entry = zend_register_internal_class_ex(&ce, class_entry_JobQueue_QueueException);
	class_entry->ce_flags |= ZEND_ACC_FINAL;

	zval property_id_default_value;
	ZVAL_EMPTY_STRING(&property_id_default_value);
	zend_string *property_id_name = zend_string_init("id", sizeof("id") - 1, 1);
	zend_declare_typed_property(class_entry, property_id_name, &property_id_default_value, ZEND_ACC_PUBLIC, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_STRING));
	zend_string_release(property_id_name);

	zval property_reason_default_value;
	ZVAL_EMPTY_STRING(&property_reason_default_value);
	zend_string *property_reason_name = zend_string_init("reason", sizeof("reason") - 1, 1);
	zend_declare_typed_property(class_entry, property_reason_name, &property_reason_default_value, ZEND_ACC_PUBLIC, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_STRING));
	zend_string_release(property_reason_name);

	zend_string *property_info_class_JobQueue_JobInfo = zend_string_init("JobQueue\\JobInfo", sizeof("JobQueue\\JobInfo")-1, 1);
	zval property_info_default_value;
	ZVAL_NULL(&property_info_default_value);
	zend_string *property_info_name = zend_string_init("info", sizeof("info") - 1, 1);
	zend_declare_typed_property(class_entry, property_info_name, &property_info_default_value, ZEND_ACC_PUBLIC, NULL, (zend_type) ZEND_TYPE_INIT_CLASS(property_info_class_JobQueue_JobInfo, 0, MAY_BE_NULL));
	zend_string_release(property_info_name);

	return class_entry;
}

static zend_class_entry *register_class_JobQueue_WaitTimeout(zend_class_entry *class_entry_JobQueue_QueueException)
{
	zend_class_entry ce, *class_entry;

	INIT_NS_CLASS_ENTRY(ce, "JobQueue", "WaitTimeout", class_JobQueue_WaitTimeout_methods);
	class_entry = zend_register_internal_class_ex(&ce, class_entry_JobQueue_QueueException);
	class_entry->ce_flags |= ZEND_ACC_FINAL;

	zval property_id_default_value;
	ZVAL_EMPTY_STRING(&property_id_default_value);
	zend_string *property_id_name = zend_string_init("id", sizeof("id") - 1, 1);
	zend_declare_typed_property(class_entry, property_id_name, &property_id_default_value, ZEND_ACC_PUBLIC, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_STRING));
	zend_string_release(property_id_name);

	return class_entry;
}

static zend_class_entry *register_class_JobQueue_LeaseLost(zend_class_entry *class_entry_JobQueue_QueueException)
{
	zend_class_entry ce, *class_entry;

	INIT_NS_CLASS_ENTRY(ce, "JobQueue", "LeaseLost", class_JobQueue_LeaseLost_methods);
	class_entry = zend_register_internal_class_ex(&ce, class_entry_JobQueue_QueueException);
	class_entry->ce_flags |= ZEND_ACC_FINAL;

	return class_entry;
}

static zend_class_entry *register_class_JobQueue_PayloadException(zend_class_entry *class_entry_JobQueue_QueueException)
{
	zend_class_entry ce, *class_entry;

	INIT_NS_CLASS_ENTRY(ce, "JobQueue", "PayloadException", class_JobQueue_PayloadException_methods);
	class_entry = zend_register_internal_class_ex(&ce, class_entry_JobQueue_QueueException);
	class_entry->ce_flags |= ZEND_ACC_FINAL;

	zval property_path_default_value;
	ZVAL_EMPTY_STRING(&property_path_default_value);
	zend_string *property_path_name = zend_string_init("path", sizeof("path") - 1, 1);
	zend_declare_typed_property(class_entry, property_path_name, &property_path_default_value, ZEND_ACC_PUBLIC, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_STRING));
	zend_string_release(property_path_name);

	return class_entry;
}

static zend_class_entry *register_class_JobQueue_NotFound(zend_class_entry *class_entry_JobQueue_QueueException)
{
	zend_class_entry ce, *class_entry;

	INIT_NS_CLASS_ENTRY(ce, "JobQueue", "NotFound", class_JobQueue_NotFound_methods);
	class_entry = zend_register_internal_class_ex(&ce, class_entry_JobQueue_QueueException);
	class_entry->ce_flags |= ZEND_ACC_FINAL;

	zval property_ids_default_value;
	ZVAL_EMPTY_ARRAY(&property_ids_default_value);
	zend_string *property_ids_name = zend_string_init("ids", sizeof("ids") - 1, 1);
	zend_declare_typed_property(class_entry, property_ids_name, &property_ids_default_value, ZEND_ACC_PUBLIC, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_ARRAY));
	zend_string_release(property_ids_name);

	return class_entry;
}

static zend_class_entry *register_class_JobQueue_TimeoutException(zend_class_entry *class_entry_JobQueue_QueueException)
{
	zend_class_entry ce, *class_entry;

	INIT_NS_CLASS_ENTRY(ce, "JobQueue", "TimeoutException", class_JobQueue_TimeoutException_methods);
	class_entry = zend_register_internal_class_ex(&ce, class_entry_JobQueue_QueueException);
	class_entry->ce_flags |= ZEND_ACC_FINAL;

	return class_entry;
}

static zend_class_entry *register_class_JobQueue_StopException(zend_class_entry *class_entry_JobQueue_QueueException)
{
	zend_class_entry ce, *class_entry;

	INIT_NS_CLASS_ENTRY(ce, "JobQueue", "StopException", class_JobQueue_StopException_methods);
	class_entry = zend_register_internal_class_ex(&ce, class_entry_JobQueue_QueueException);
	class_entry->ce_flags |= ZEND_ACC_FINAL;

	return class_entry;
}

static zend_class_entry *register_class_JobQueue_RecordedException(zend_class_entry *class_entry_JobQueue_QueueException)
{
	zend_class_entry ce, *class_entry;

	INIT_NS_CLASS_ENTRY(ce, "JobQueue", "RecordedException", class_JobQueue_RecordedException_methods);
	class_entry = zend_register_internal_class_ex(&ce, class_entry_JobQueue_QueueException);
	class_entry->ce_flags |= ZEND_ACC_FINAL;

	zval property_className_default_value;
	ZVAL_UNDEF(&property_className_default_value);
	zend_string *property_className_name = zend_string_init("className", sizeof("className") - 1, 1);
	zend_declare_typed_property(class_entry, property_className_name, &property_className_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_STRING|MAY_BE_NULL));
	zend_string_release(property_className_name);

	zval property_place_default_value;
	ZVAL_UNDEF(&property_place_default_value);
	zend_string *property_place_name = zend_string_init("place", sizeof("place") - 1, 1);
	zend_declare_typed_property(class_entry, property_place_name, &property_place_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_STRING|MAY_BE_NULL));
	zend_string_release(property_place_name);

	zval property_recordedTrace_default_value;
	ZVAL_UNDEF(&property_recordedTrace_default_value);
	zend_string *property_recordedTrace_name = zend_string_init("recordedTrace", sizeof("recordedTrace") - 1, 1);
	zend_declare_typed_property(class_entry, property_recordedTrace_name, &property_recordedTrace_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_STRING|MAY_BE_NULL));
	zend_string_release(property_recordedTrace_name);

	return class_entry;
}

static zend_class_entry *register_class_JobQueue_RetryAfter(zend_class_entry *class_entry_JobQueue_QueueException)
{
	zend_class_entry ce, *class_entry;

	INIT_NS_CLASS_ENTRY(ce, "JobQueue", "RetryAfter", class_JobQueue_RetryAfter_methods);
	class_entry = zend_register_internal_class_ex(&ce, class_entry_JobQueue_QueueException);

	zval property_seconds_default_value;
	ZVAL_UNDEF(&property_seconds_default_value);
	zend_string *property_seconds_name = zend_string_init("seconds", sizeof("seconds") - 1, 1);
	zend_declare_typed_property(class_entry, property_seconds_name, &property_seconds_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_LONG|MAY_BE_DOUBLE));
	zend_string_release(property_seconds_name);

	return class_entry;
}
