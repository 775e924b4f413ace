/* This is a generated file, edit the .stub.php file instead.
 * Stub hash: 24c56a3a0cfffae07c94835ef26a9017402ea798 */

ZEND_BEGIN_ARG_INFO_EX(arginfo_class_JobQueue_JobInfo___construct, 0, 0, 0)
ZEND_END_ARG_INFO()


ZEND_METHOD(JobQueue_JobInfo, __construct);


static const zend_function_entry class_JobQueue_JobInfo_methods[] = {
	ZEND_ME(JobQueue_JobInfo, __construct, arginfo_class_JobQueue_JobInfo___construct, ZEND_ACC_PRIVATE)
	ZEND_FE_END
};

static zend_class_entry *register_class_JobQueue_JobInfo(void)
{
	zend_class_entry ce, *class_entry;

	INIT_NS_CLASS_ENTRY(ce, "JobQueue", "JobInfo", class_JobQueue_JobInfo_methods);
	class_entry = zend_register_internal_class_ex(&ce, NULL);
	class_entry->ce_flags |= ZEND_ACC_FINAL|ZEND_ACC_NO_DYNAMIC_PROPERTIES|ZEND_ACC_NOT_SERIALIZABLE;

	zval property_id_default_value;
	ZVAL_UNDEF(&property_id_default_value);
	zend_string *property_id_name = zend_string_init("id", sizeof("id") - 1, 1);
	zend_declare_typed_property(class_entry, property_id_name, &property_id_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_STRING));
	zend_string_release(property_id_name);

	zval property_name_default_value;
	ZVAL_UNDEF(&property_name_default_value);
	zend_string *property_name_name = zend_string_init("name", sizeof("name") - 1, 1);
	zend_declare_typed_property(class_entry, property_name_name, &property_name_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_STRING));
	zend_string_release(property_name_name);

	zval property_queue_default_value;
	ZVAL_UNDEF(&property_queue_default_value);
	zend_string *property_queue_name = zend_string_init("queue", sizeof("queue") - 1, 1);
	zend_declare_typed_property(class_entry, property_queue_name, &property_queue_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_STRING));
	zend_string_release(property_queue_name);

	zval property_version_default_value;
	ZVAL_UNDEF(&property_version_default_value);
	zend_string *property_version_name = zend_string_init("version", sizeof("version") - 1, 1);
	zend_declare_typed_property(class_entry, property_version_name, &property_version_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_LONG));
	zend_string_release(property_version_name);

	zend_string *property_state_class_JobQueue_State = zend_string_init("JobQueue\\State", sizeof("JobQueue\\State")-1, 1);
	zval property_state_default_value;
	ZVAL_UNDEF(&property_state_default_value);
	zend_string *property_state_name = zend_string_init("state", sizeof("state") - 1, 1);
	zend_declare_typed_property(class_entry, property_state_name, &property_state_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_CLASS(property_state_class_JobQueue_State, 0, 0));
	zend_string_release(property_state_name);

	zval property_attempt_default_value;
	ZVAL_UNDEF(&property_attempt_default_value);
	zend_string *property_attempt_name = zend_string_init("attempt", sizeof("attempt") - 1, 1);
	zend_declare_typed_property(class_entry, property_attempt_name, &property_attempt_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_LONG));
	zend_string_release(property_attempt_name);

	zval property_failures_default_value;
	ZVAL_UNDEF(&property_failures_default_value);
	zend_string *property_failures_name = zend_string_init("failures", sizeof("failures") - 1, 1);
	zend_declare_typed_property(class_entry, property_failures_name, &property_failures_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_LONG));
	zend_string_release(property_failures_name);

	zval property_crashes_default_value;
	ZVAL_UNDEF(&property_crashes_default_value);
	zend_string *property_crashes_name = zend_string_init("crashes", sizeof("crashes") - 1, 1);
	zend_declare_typed_property(class_entry, property_crashes_name, &property_crashes_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_LONG));
	zend_string_release(property_crashes_name);

	zval property_releases_default_value;
	ZVAL_UNDEF(&property_releases_default_value);
	zend_string *property_releases_name = zend_string_init("releases", sizeof("releases") - 1, 1);
	zend_declare_typed_property(class_entry, property_releases_name, &property_releases_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_LONG));
	zend_string_release(property_releases_name);

	zval property_deliveries_default_value;
	ZVAL_UNDEF(&property_deliveries_default_value);
	zend_string *property_deliveries_name = zend_string_init("deliveries", sizeof("deliveries") - 1, 1);
	zend_declare_typed_property(class_entry, property_deliveries_name, &property_deliveries_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_LONG));
	zend_string_release(property_deliveries_name);

	zval property_losses_default_value;
	ZVAL_UNDEF(&property_losses_default_value);
	zend_string *property_losses_name = zend_string_init("losses", sizeof("losses") - 1, 1);
	zend_declare_typed_property(class_entry, property_losses_name, &property_losses_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_LONG));
	zend_string_release(property_losses_name);

	zval property_priority_default_value;
	ZVAL_UNDEF(&property_priority_default_value);
	zend_string *property_priority_name = zend_string_init("priority", sizeof("priority") - 1, 1);
	zend_declare_typed_property(class_entry, property_priority_name, &property_priority_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_LONG));
	zend_string_release(property_priority_name);

	zval property_unique_default_value;
	ZVAL_UNDEF(&property_unique_default_value);
	zend_string *property_unique_name = zend_string_init("unique", sizeof("unique") - 1, 1);
	zend_declare_typed_property(class_entry, property_unique_name, &property_unique_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_STRING|MAY_BE_NULL));
	zend_string_release(property_unique_name);

	zval property_payload_default_value;
	ZVAL_UNDEF(&property_payload_default_value);
	zend_string *property_payload_name = zend_string_init("payload", sizeof("payload") - 1, 1);
	zend_declare_typed_property(class_entry, property_payload_name, &property_payload_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_ANY));
	zend_string_release(property_payload_name);

	zval property_payloadError_default_value;
	ZVAL_UNDEF(&property_payloadError_default_value);
	zend_string *property_payloadError_name = zend_string_init("payloadError", sizeof("payloadError") - 1, 1);
	zend_declare_typed_property(class_entry, property_payloadError_name, &property_payloadError_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_STRING|MAY_BE_NULL));
	zend_string_release(property_payloadError_name);

	zval property_context_default_value;
	ZVAL_UNDEF(&property_context_default_value);
	zend_string *property_context_name = zend_string_init("context", sizeof("context") - 1, 1);
	zend_declare_typed_property(class_entry, property_context_name, &property_context_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_ARRAY));
	zend_string_release(property_context_name);

	zval property_options_default_value;
	ZVAL_UNDEF(&property_options_default_value);
	zend_string *property_options_name = zend_string_init("options", sizeof("options") - 1, 1);
	zend_declare_typed_property(class_entry, property_options_name, &property_options_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_ARRAY));
	zend_string_release(property_options_name);

	zend_string *property_enqueuedAt_class_DateTimeImmutable = zend_string_init("DateTimeImmutable", sizeof("DateTimeImmutable")-1, 1);
	zval property_enqueuedAt_default_value;
	ZVAL_UNDEF(&property_enqueuedAt_default_value);
	zend_string *property_enqueuedAt_name = zend_string_init("enqueuedAt", sizeof("enqueuedAt") - 1, 1);
	zend_declare_typed_property(class_entry, property_enqueuedAt_name, &property_enqueuedAt_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_CLASS(property_enqueuedAt_class_DateTimeImmutable, 0, 0));
	zend_string_release(property_enqueuedAt_name);

	zend_string *property_availableAt_class_DateTimeImmutable = zend_string_init("DateTimeImmutable", sizeof("DateTimeImmutable")-1, 1);
	zval property_availableAt_default_value;
	ZVAL_UNDEF(&property_availableAt_default_value);
	zend_string *property_availableAt_name = zend_string_init("availableAt", sizeof("availableAt") - 1, 1);
	zend_declare_typed_property(class_entry, property_availableAt_name, &property_availableAt_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_CLASS(property_availableAt_class_DateTimeImmutable, 0, MAY_BE_NULL));
	zend_string_release(property_availableAt_name);

	zend_string *property_reservedUntil_class_DateTimeImmutable = zend_string_init("DateTimeImmutable", sizeof("DateTimeImmutable")-1, 1);
	zval property_reservedUntil_default_value;
	ZVAL_UNDEF(&property_reservedUntil_default_value);
	zend_string *property_reservedUntil_name = zend_string_init("reservedUntil", sizeof("reservedUntil") - 1, 1);
	zend_declare_typed_property(class_entry, property_reservedUntil_name, &property_reservedUntil_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_CLASS(property_reservedUntil_class_DateTimeImmutable, 0, MAY_BE_NULL));
	zend_string_release(property_reservedUntil_name);

	zval property_reservedBy_default_value;
	ZVAL_UNDEF(&property_reservedBy_default_value);
	zend_string *property_reservedBy_name = zend_string_init("reservedBy", sizeof("reservedBy") - 1, 1);
	zend_declare_typed_property(class_entry, property_reservedBy_name, &property_reservedBy_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_STRING|MAY_BE_NULL));
	zend_string_release(property_reservedBy_name);

	zend_string *property_diedAt_class_DateTimeImmutable = zend_string_init("DateTimeImmutable", sizeof("DateTimeImmutable")-1, 1);
	zval property_diedAt_default_value;
	ZVAL_UNDEF(&property_diedAt_default_value);
	zend_string *property_diedAt_name = zend_string_init("diedAt", sizeof("diedAt") - 1, 1);
	zend_declare_typed_property(class_entry, property_diedAt_name, &property_diedAt_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_CLASS(property_diedAt_class_DateTimeImmutable, 0, MAY_BE_NULL));
	zend_string_release(property_diedAt_name);

	zval property_reason_default_value;
	ZVAL_UNDEF(&property_reason_default_value);
	zend_string *property_reason_name = zend_string_init("reason", sizeof("reason") - 1, 1);
	zend_declare_typed_property(class_entry, property_reason_name, &property_reason_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_STRING|MAY_BE_NULL));
	zend_string_release(property_reason_name);

	zval property_lastError_default_value;
	ZVAL_UNDEF(&property_lastError_default_value);
	zend_string *property_lastError_name = zend_string_init("lastError", sizeof("lastError") - 1, 1);
	zend_declare_typed_property(class_entry, property_lastError_name, &property_lastError_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_ARRAY|MAY_BE_NULL));
	zend_string_release(property_lastError_name);

	zval property_history_default_value;
	ZVAL_UNDEF(&property_history_default_value);
	zend_string *property_history_name = zend_string_init("history", sizeof("history") - 1, 1);
	zend_declare_typed_property(class_entry, property_history_name, &property_history_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_ARRAY));
	zend_string_release(property_history_name);

	zval property_progress_default_value;
	ZVAL_UNDEF(&property_progress_default_value);
	zend_string *property_progress_name = zend_string_init("progress", sizeof("progress") - 1, 1);
	zend_declare_typed_property(class_entry, property_progress_name, &property_progress_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_ARRAY|MAY_BE_NULL));
	zend_string_release(property_progress_name);

	zval property_result_default_value;
	ZVAL_UNDEF(&property_result_default_value);
	zend_string *property_result_name = zend_string_init("result", sizeof("result") - 1, 1);
	zend_declare_typed_property(class_entry, property_result_name, &property_result_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_ANY));
	zend_string_release(property_result_name);

	zval property_resultError_default_value;
	ZVAL_UNDEF(&property_resultError_default_value);
	zend_string *property_resultError_name = zend_string_init("resultError", sizeof("resultError") - 1, 1);
	zend_declare_typed_property(class_entry, property_resultError_name, &property_resultError_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_STRING|MAY_BE_NULL));
	zend_string_release(property_resultError_name);

	zend_string *property_keptUntil_class_DateTimeImmutable = zend_string_init("DateTimeImmutable", sizeof("DateTimeImmutable")-1, 1);
	zval property_keptUntil_default_value;
	ZVAL_UNDEF(&property_keptUntil_default_value);
	zend_string *property_keptUntil_name = zend_string_init("keptUntil", sizeof("keptUntil") - 1, 1);
	zend_declare_typed_property(class_entry, property_keptUntil_name, &property_keptUntil_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_CLASS(property_keptUntil_class_DateTimeImmutable, 0, MAY_BE_NULL));
	zend_string_release(property_keptUntil_name);

	return class_entry;
}
