/* This is a generated file, edit the .stub.php file instead.
 * Stub hash: 3c8df962b6d633f249a999891438c1cd819c3df9 */




static const zend_function_entry class_JobQueue_State_methods[] = {
	ZEND_FE_END
};

static zend_class_entry *register_class_JobQueue_State(void)
{
	zend_class_entry *class_entry = zend_register_internal_enum("JobQueue\\State", IS_STRING, class_JobQueue_State_methods);

	zval enum_case_Ready_value;
	zend_string *enum_case_Ready_value_str = zend_string_init("ready", strlen("ready"), 1);
	ZVAL_STR(&enum_case_Ready_value, enum_case_Ready_value_str);
	zend_enum_add_case_cstr(class_entry, "Ready", &enum_case_Ready_value);

	zval enum_case_Delayed_value;
	zend_string *enum_case_Delayed_value_str = zend_string_init("delayed", strlen("delayed"), 1);
	ZVAL_STR(&enum_case_Delayed_value, enum_case_Delayed_value_str);
	zend_enum_add_case_cstr(class_entry, "Delayed", &enum_case_Delayed_value);

	zval enum_case_Reserved_value;
	zend_string *enum_case_Reserved_value_str = zend_string_init("reserved", strlen("reserved"), 1);
	ZVAL_STR(&enum_case_Reserved_value, enum_case_Reserved_value_str);
	zend_enum_add_case_cstr(class_entry, "Reserved", &enum_case_Reserved_value);

	zval enum_case_Done_value;
	zend_string *enum_case_Done_value_str = zend_string_init("done", strlen("done"), 1);
	ZVAL_STR(&enum_case_Done_value, enum_case_Done_value_str);
	zend_enum_add_case_cstr(class_entry, "Done", &enum_case_Done_value);

	zval enum_case_Dead_value;
	zend_string *enum_case_Dead_value_str = zend_string_init("dead", strlen("dead"), 1);
	ZVAL_STR(&enum_case_Dead_value, enum_case_Dead_value_str);
	zend_enum_add_case_cstr(class_entry, "Dead", &enum_case_Dead_value);

	return class_entry;
}
