/* SPDX-License-Identifier: MIT
 *
 * From a payload back to a job object: each value to the constructor parameter of its name,
 * converted to the declared type where the wire has no kind for it (enums, dates, BigInt, Bytes).
 */
#include "php_jobqueue.h"

#include <ext/date/php_date.h>
#include <zend_enum.h>

/* ---- one value to one declared class --------------------------------------------------------- */

static bool to_enum(zend_class_entry *ce, zval *value, zval *out)
{
    zend_object *one = NULL;
    if (Z_TYPE_P(value) != ce->enum_backing_type || ce->enum_backing_type == IS_UNDEF) {
        return false;
    }
    zend_long number = Z_TYPE_P(value) == IS_LONG ? Z_LVAL_P(value) : 0;
    zend_string *text = Z_TYPE_P(value) == IS_STRING ? Z_STR_P(value) : NULL;
    if (zend_enum_get_case_by_value(&one, ce, number, text, true) == FAILURE || !one) {
        return false;
    }
    ZVAL_OBJ_COPY(out, one);
    return true;
}

/* DateTime and subclasses of the two: by their own createFromInterface. */
static bool to_date(zend_class_entry *ce, zval *value, zval *out)
{
    if (Z_TYPE_P(value) != IS_OBJECT ||
        !instanceof_function(Z_OBJCE_P(value), php_date_get_interface_ce()) ||
        !instanceof_function(ce, php_date_get_interface_ce())) {
        return false;
    }
    if (instanceof_function(Z_OBJCE_P(value), ce)) {
        ZVAL_COPY(out, value);
        return true;
    }
    zend_call_method_with_1_params(NULL, ce, NULL, "createfrominterface", out, value);
    return !EG(exception);
}

static bool to_class(zend_class_entry *ce, zval *value, zval *out)
{
    if (ce->ce_flags & ZEND_ACC_ENUM) {
        return to_enum(ce, value, out);
    }
    if (ce == zend_standard_class_def && Z_TYPE_P(value) == IS_ARRAY) {
        ZVAL_OBJ(out, zend_objects_new(ce));
        Z_OBJ_P(out)->properties = zend_symtable_to_proptable(Z_ARRVAL_P(value));
        return true;
    }
    bool bigint = ce == php_jobq_ce_bigint && Z_TYPE_P(value) == IS_LONG;
    bool bytes = ce == php_jobq_ce_bytes && Z_TYPE_P(value) == IS_STRING;
    if (bigint || bytes) {
        zval text;
        object_init_ex(out, ce);
        ZVAL_STR(&text, zval_get_string(value));
        php_jobq_init_property(Z_OBJ_P(out), 0, &text);
        return true;
    }
    return to_date(ce, value, out);
}

static bool to_named(const zend_type *type, zval *value, zval *out)
{
    if (!ZEND_TYPE_HAS_NAME(*type)) {
        return false;
    }
    zend_class_entry *ce = zend_lookup_class(ZEND_TYPE_NAME(*type));
    return ce && to_class(ce, value, out);
}

/* As under strict_types: an int may become a float, no other scalar becomes another one, because
 * that would change it (1.5 to 1, 5 to true). */
static bool is_other_scalar(zend_type type, const zval *value)
{
    const uint32_t scalars = MAY_BE_BOOL | MAY_BE_LONG | MAY_BE_DOUBLE | MAY_BE_STRING;
    uint32_t mask = ZEND_TYPE_FULL_MASK(type), own = 1u << Z_TYPE_P(value);
    bool widens = own == MAY_BE_LONG && (mask & MAY_BE_DOUBLE);
    return (own & scalars) && (mask & scalars) && !(mask & own) && !widens;
}

/* What the parameter's type makes of the value; the engine checks the rest. */
static void convert(zend_type type, zval *value, zval *out)
{
    if (ZEND_TYPE_FULL_MASK(type) & (1u << Z_TYPE_P(value))) {
        ZVAL_COPY(out, value);
        return;
    }
    if (ZEND_TYPE_HAS_LIST(type)) {
        const zend_type *single;
        ZEND_TYPE_LIST_FOREACH (ZEND_TYPE_LIST(type), single) {
            if (to_named(single, value, out)) {
                return;
            }
        }
        ZEND_TYPE_LIST_FOREACH_END();
    } else if (to_named(&type, value, out)) {
        return;
    }
    ZVAL_COPY(out, value);
}

/* ---- all of them ----------------------------------------------------------------------------- */

static zend_result misfit(bool *misfit_out, const char *fmt, zend_class_entry *ce, const char *what)
{
    zend_string *path = strpprintf(0, "payload%s%s", *what ? "." : "", what);
    if (!EG(exception)) {
        php_jobq_throw_payload(path, fmt, ZSTR_VAL(path), ZSTR_VAL(ce->name));
    }
    zend_string_release(path);
    *misfit_out = true;
    return FAILURE;
}

/* In the engine's words, like its own type errors. */
static zend_result refuse_scalar(zend_class_entry *ce, uint32_t i, const zval *value,
                                 bool *misfit_out)
{
    const zend_arg_info *parameter = &ce->constructor->op_array.arg_info[i];
    zend_string *type = zend_type_to_string(parameter->type);
    php_jobq_throw_type("%s::__construct(): Argument #%u ($%s) must be of type %s, %s given",
                        ZSTR_VAL(ce->constructor->common.scope->name), i + 1,
                        ZSTR_VAL(parameter->name), ZSTR_VAL(type), zend_zval_type_name(value));
    zend_string_release(type);
    *misfit_out = true;
    return FAILURE;
}

static zend_result gather(zend_class_entry *ce, HashTable *payload, HashTable *named,
                          bool *misfit_out)
{
    const zend_function *constructor = ce->constructor;
    uint32_t n =
        constructor && constructor->type == ZEND_USER_FUNCTION ? constructor->common.num_args : 0;
    for (uint32_t i = 0; i < n; i++) {
        const zend_arg_info *parameter = &constructor->op_array.arg_info[i];
        zval *value = zend_symtable_find(payload, parameter->name), converted;
        if (!value && i < constructor->common.required_num_args) {
            return misfit(misfit_out, "%s: missing; the constructor of %s needs it", ce,
                          ZSTR_VAL(parameter->name));
        }
        if (!value) {
            continue;
        }
        convert(parameter->type, value, &converted);
        zend_hash_update(named, parameter->name, &converted);
        if (is_other_scalar(parameter->type, &converted)) {
            return refuse_scalar(ce, i, &converted, misfit_out);
        }
    }
    zend_string *key;
    zend_ulong index;
    ZEND_HASH_FOREACH_KEY (payload, index, key) {
        (void)index;
        if (!key || !zend_hash_exists(named, key)) {
            return misfit(misfit_out, "%s: the constructor of %s has no such parameter", ce,
                          key ? ZSTR_VAL(key) : "0");
        }
    }
    ZEND_HASH_FOREACH_END();
    return EG(exception) ? FAILURE : SUCCESS;
}

/* A type error of the call itself, not of something the constructor did. */
static bool is_argument_error(zend_class_entry *ce)
{
    zval rv;
    if (!EG(exception) || !instanceof_function(EG(exception)->ce, zend_ce_type_error)) {
        return false;
    }
    zval *message = zend_read_property_ex(zend_ce_error, EG(exception),
                                          ZSTR_KNOWN(ZEND_STR_MESSAGE), true, &rv);
    zend_string *start = strpprintf(0, "%s::__construct(): Argument #",
                                    ZSTR_VAL(ce->constructor->common.scope->name));
    bool is = Z_TYPE_P(message) == IS_STRING &&
              strncmp(Z_STRVAL_P(message), ZSTR_VAL(start), ZSTR_LEN(start)) == 0;
    zend_string_release(start);
    return is;
}

static zend_result construct(zend_class_entry *ce, HashTable *named, zval *out, bool *misfit_out)
{
    if (object_init_ex(out, ce) == FAILURE) {
        return FAILURE;
    }
    if (!ce->constructor) {
        return SUCCESS;
    }
    zend_call_known_function(ce->constructor, Z_OBJ_P(out), ce, NULL, 0, NULL, named);
    if (!EG(exception)) {
        return SUCCESS;
    }
    *misfit_out = is_argument_error(ce);
    zend_object_store_ctor_failed(Z_OBJ_P(out));
    zval_ptr_dtor(out);
    ZVAL_UNDEF(out);
    return FAILURE;
}

zend_result php_jobq_as_job_build(zend_class_entry *ce, zval *payload, zval *out, bool *misfit_out)
{
    *misfit_out = false;
    ZVAL_UNDEF(out);
    if (Z_TYPE_P(payload) > IS_NULL && Z_TYPE_P(payload) != IS_ARRAY) {
        return misfit(misfit_out, "%s: a map of the constructor parameters of %s is needed", ce,
                      "");
    }
    HashTable *named = zend_new_array(8);
    /* nothing pushed beside the name: no arguments */
    HashTable *given =
        Z_TYPE_P(payload) == IS_ARRAY ? Z_ARRVAL_P(payload) : (HashTable *)&zend_empty_array;
    zend_result result = gather(ce, given, named, misfit_out);
    if (result == SUCCESS) {
        result = construct(ce, named, out, misfit_out);
    }
    zend_array_destroy(named);
    return result;
}
