/* SPDX-License-Identifier: MIT
 *
 * BigInt and Bytes: values PHP has no type of its own for.
 */
#include "php_jobqueue.h"

#include "bigint_arginfo.h"
#include "bytes_arginfo.h"

zend_class_entry *php_jobq_ce_bigint, *php_jobq_ce_bytes;

/* -?(0|[1-9][0-9]*) */
bool php_jobq_is_decimal(const char *p, size_t n)
{
    const char *digits = n && *p == '-' ? p + 1 : p, *end = p + n;
    if (digits == end || (*digits == '0' && digits + 1 != end)) {
        return false;
    }
    for (; digits < end; digits++) {
        if (*digits < '0' || *digits > '9') {
            return false;
        }
    }
    return true;
}

static zend_result init_value(zval *self, zend_string *text)
{
    zval value;
    if (Z_TYPE_P(OBJ_PROP_NUM(Z_OBJ_P(self), 0)) != IS_UNDEF) {
        php_jobq_throw_logic("the object has its value already");
        return FAILURE;
    }
    ZVAL_STR(&value, text);
    php_jobq_init_property(Z_OBJ_P(self), 0, &value);
    return SUCCESS;
}

static void return_value_of(zval *self, zval *out)
{
    zval *value = OBJ_PROP_NUM(Z_OBJ_P(self), 0);
    if (Z_TYPE_P(value) == IS_STRING) {
        ZVAL_COPY(out, value);
    } else {
        ZVAL_EMPTY_STRING(out);
    }
}

ZEND_METHOD(JobQueue_BigInt, __construct)
{
    zend_string *text;
    zend_long number;
    ZEND_PARSE_PARAMETERS_START(1, 1)
        Z_PARAM_STR_OR_LONG(text, number)
    ZEND_PARSE_PARAMETERS_END();
    if (text && !php_jobq_is_decimal(ZSTR_VAL(text), ZSTR_LEN(text))) {
        php_jobq_throw_usage(
            "a BigInt is written in decimal digits, without blanks or leading zeros");
        RETURN_THROWS();
    }
    text = text ? zend_string_copy(text) : zend_long_to_str(number);
    if (init_value(ZEND_THIS, text) == FAILURE) {
        zend_string_release(text);
        RETURN_THROWS();
    }
}

ZEND_METHOD(JobQueue_BigInt, __toString)
{
    ZEND_PARSE_PARAMETERS_NONE();
    return_value_of(ZEND_THIS, return_value);
}

ZEND_METHOD(JobQueue_Bytes, __construct)
{
    zend_string *text;
    ZEND_PARSE_PARAMETERS_START(1, 1)
        Z_PARAM_STR(text)
    ZEND_PARSE_PARAMETERS_END();
    if (init_value(ZEND_THIS, zend_string_copy(text)) == FAILURE) {
        zend_string_release(text);
        RETURN_THROWS();
    }
}

ZEND_METHOD(JobQueue_Bytes, __toString)
{
    ZEND_PARSE_PARAMETERS_NONE();
    return_value_of(ZEND_THIS, return_value);
}

void php_jobq_register_numbers(void)
{
    php_jobq_ce_bigint = register_class_JobQueue_BigInt(zend_ce_stringable);
    php_jobq_ce_bytes = register_class_JobQueue_Bytes(zend_ce_stringable);
}
