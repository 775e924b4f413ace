/* This is a generated file, edit the .stub.php file instead.
 * Stub hash: 381a6102308d79e54341ba5673f1d6b8c33341bd */

ZEND_BEGIN_ARG_INFO_EX(arginfo_class_JobQueue_Job___construct, 0, 0, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_JobQueue_Job_release, 0, 0, IS_VOID, 0)
	ZEND_ARG_TYPE_MASK(0, delay, MAY_BE_LONG|MAY_BE_DOUBLE, "0")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_JobQueue_Job_fail, 0, 1, IS_VOID, 0)
	ZEND_ARG_OBJ_TYPE_MASK(0, reason, Throwable, MAY_BE_STRING, NULL)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_JobQueue_Job_delete, 0, 0, IS_VOID, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_JobQueue_Job_defer, 0, 1, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO(0, cleanup, IS_CALLABLE, 0)
ZEND_END_ARG_INFO()

#define arginfo_class_JobQueue_Job_extend arginfo_class_JobQueue_Job_delete

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_JobQueue_Job_isCancelled, 0, 0, _IS_BOOL, 0)
ZEND_END_ARG_INFO()

#define arginfo_class_JobQueue_Job_isStopping arginfo_class_JobQueue_Job_isCancelled

#define arginfo_class_JobQueue_Job_checkpoint arginfo_class_JobQueue_Job_delete

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_JobQueue_Job_age, 0, 0, IS_DOUBLE, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_JobQueue_Job_remaining, 0, 0, IS_DOUBLE, 1)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_JobQueue_Job_fingerprint, 0, 0, IS_STRING, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_JobQueue_Job_progress, 0, 1, IS_VOID, 0)
	ZEND_ARG_TYPE_MASK(0, percent, MAY_BE_LONG|MAY_BE_DOUBLE, NULL)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, note, IS_STRING, 1, "null")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_JobQueue_Job_effect, 0, 1, IS_MIXED, 0)
	ZEND_ARG_TYPE_INFO(0, statement, IS_ARRAY, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_JobQueue_Job_doneStatement, 0, 0, IS_ARRAY, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, placeholders, IS_STRING, 0, "\"?\"")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, result, IS_MIXED, 0, "null")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_JobQueue_Job_done, 0, 0, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, result, IS_MIXED, 0, "null")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_JobQueue_Job_retry, 0, 0, IS_VOID, 0)
	ZEND_ARG_TYPE_MASK(0, delay, MAY_BE_LONG|MAY_BE_DOUBLE|MAY_BE_NULL, "null")
	ZEND_ARG_OBJ_INFO_WITH_DEFAULT_VALUE(0, error, Throwable, 1, "null")
ZEND_END_ARG_INFO()


ZEND_METHOD(JobQueue_Job, __construct);
ZEND_METHOD(JobQueue_Job, release);
ZEND_METHOD(JobQueue_Job, fail);
ZEND_METHOD(JobQueue_Job, delete);
ZEND_METHOD(JobQueue_Job, defer);
ZEND_METHOD(JobQueue_Job, extend);
ZEND_METHOD(JobQueue_Job, isCancelled);
ZEND_METHOD(JobQueue_Job, isStopping);
ZEND_METHOD(JobQueue_Job, checkpoint);
ZEND_METHOD(JobQueue_Job, age);
ZEND_METHOD(JobQueue_Job, remaining);
ZEND_METHOD(JobQueue_Job, fingerprint);
ZEND_METHOD(JobQueue_Job, progress);
ZEND_METHOD(JobQueue_Job, effect);
ZEND_METHOD(JobQueue_Job, doneStatement);
ZEND_METHOD(JobQueue_Job, done);
ZEND_METHOD(JobQueue_Job, retry);


static const zend_function_entry class_JobQueue_Job_methods[] = {
	ZEND_ME(JobQueue_Job, __construct, arginfo_class_JobQueue_Job___construct, ZEND_ACC_PRIVATE)
	ZEND_ME(JobQueue_Job, release, arginfo_class_JobQueue_Job_release, ZEND_ACC_PUBLIC)
	ZEND_ME(JobQueue_Job, fail, arginfo_class_JobQueue_Job_fail, ZEND_ACC_PUBLIC)
	ZEND_ME(JobQueue_Job, delete, arginfo_class_JobQueue_Job_delete, ZEND_ACC_PUBLIC)
	ZEND_ME(JobQueue_Job, defer, arginfo_class_JobQueue_Job_defer, ZEND_ACC_PUBLIC)
	ZEND_ME(JobQueue_Job, extend, arginfo_class_JobQueue_Job_extend, ZEND_ACC_PUBLIC)
	ZEND_ME(JobQueue_Job, isCancelled, arginfo_class_JobQueue_Job_isCancelled, ZEND_ACC_PUBLIC)
	ZEND_ME(JobQueue_Job, isStopping, arginfo_class_JobQueue_Job_isStopping, ZEND_ACC_PUBLIC)
	ZEND_ME(JobQueue_Job, checkpoint, arginfo_class_JobQueue_Job_checkpoint, ZEND_ACC_PUBLIC)
	ZEND_ME(JobQueue_Job, age, arginfo_class_JobQueue_Job_age, ZEND_ACC_PUBLIC)
	ZEND_ME(JobQueue_Job, remaining, arginfo_class_JobQueue_Job_remaining, ZEND_ACC_PUBLIC)
	ZEND_ME(JobQueue_Job, fingerprint, arginfo_class_JobQueue_Job_fingerprint, ZEND_ACC_PUBLIC)
	ZEND_ME(JobQueue_Job, progress, arginfo_class_JobQueue_Job_progress, ZEND_ACC_PUBLIC)
	ZEND_ME(JobQueue_Job, effect, arginfo_class_JobQueue_Job_effect, ZEND_ACC_PUBLIC)
	ZEND_ME(JobQueue_Job, doneStatement, arginfo_class_JobQueue_Job_doneStatement, ZEND_ACC_PUBLIC)
	ZEND_ME(JobQueue_Job, done, arginfo_class_JobQueue_Job_done, ZEND_ACC_PUBLIC)
	ZEND_ME(JobQueue_Job, retry, arginfo_class_JobQueue_Job_retry, ZEND_ACC_PUBLIC)
	ZEND_FE_END
};

static zend_class_entry *register_class_JobQueue_Job(void)
{
	zend_class_entry ce, *class_entry;

	INIT_NS_CLASS_ENTRY(ce, "JobQueue", "Job", class_JobQueue_Job_methods);
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

	zval property_fence_default_value;
	ZVAL_UNDEF(&property_fence_default_value);
	zend_string *property_fence_name = zend_string_init("fence", sizeof("fence") - 1, 1);
	zend_declare_typed_property(class_entry, property_fence_name, &property_fence_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_LONG));
	zend_string_release(property_fence_name);

	zval property_payload_default_value;
	ZVAL_UNDEF(&property_payload_default_value);
	zend_string *property_payload_name = zend_string_init("payload", sizeof("payload") - 1, 1);
	zend_declare_typed_property(class_entry, property_payload_name, &property_payload_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_ANY));
	zend_string_release(property_payload_name);

	zval property_context_default_value;
	ZVAL_UNDEF(&property_context_default_value);
	zend_string *property_context_name = zend_string_init("context", sizeof("context") - 1, 1);
	zend_declare_typed_property(class_entry, property_context_name, &property_context_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_ARRAY));
	zend_string_release(property_context_name);

	zend_string *property_enqueuedAt_class_DateTimeImmutable = zend_string_init("DateTimeImmutable", sizeof("DateTimeImmutable")-1, 1);
	zval property_enqueuedAt_default_value;
	ZVAL_UNDEF(&property_enqueuedAt_default_value);
	zend_string *property_enqueuedAt_name = zend_string_init("enqueuedAt", sizeof("enqueuedAt") - 1, 1);
	zend_declare_typed_property(class_entry, property_enqueuedAt_name, &property_enqueuedAt_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_CLASS(property_enqueuedAt_class_DateTimeImmutable, 0, 0));
	zend_string_release(property_enqueuedAt_name);

	return class_entry;
}
