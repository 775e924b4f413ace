/* SPDX-License-Identifier: MIT
 *
 * Statements of the caller's and of the store's (rules B7, B8, O1): a text or [text, [parameters]]
 * in PHP.
 */
#include "php_jobqueue.h"

static zend_result refuse(const char *what, uint32_t i, zval *value)
{
    php_jobq_throw_type(
        "%s: parameter %u: null, bool, int, float, string, Bytes or BigInt is expected, "
        "%s given",
        what, i + 1, zend_zval_type_name(value));
    return FAILURE;
}

static void set_bytes(jobq_param *param, int type, zend_string *text)
{
    param->type = type;
    param->bytes = (jobq_slice){ZSTR_VAL(text), ZSTR_LEN(text)};
}

static zend_result read_object(const char *what, uint32_t i, zval *value, jobq_param *param)
{
    bool bytes = Z_OBJCE_P(value) == php_jobq_ce_bytes;
    if (!bytes && Z_OBJCE_P(value) != php_jobq_ce_bigint) {
        return refuse(what, i, value);
    }
    zval *text = OBJ_PROP_NUM(Z_OBJ_P(value), 0);
    if (Z_TYPE_P(text) == IS_STRING) {
        set_bytes(param, bytes ? JOBQ_PARAM_BYTES : JOBQ_PARAM_TEXT, Z_STR_P(text));
    }
    return SUCCESS;
}

static zend_result read_param(const char *what, uint32_t i, zval *value, jobq_param *param)
{
    ZVAL_DEREF(value);
    switch (Z_TYPE_P(value)) {
    case IS_NULL:
        return SUCCESS;
    case IS_FALSE:
    case IS_TRUE:
        *param = (jobq_param){.type = JOBQ_PARAM_INT, .integer = Z_TYPE_P(value) == IS_TRUE};
        return SUCCESS;
    case IS_LONG:
        *param = (jobq_param){.type = JOBQ_PARAM_INT, .integer = Z_LVAL_P(value)};
        return SUCCESS;
    case IS_DOUBLE:
        *param = (jobq_param){.type = JOBQ_PARAM_DOUBLE, .real = Z_DVAL_P(value)};
        return SUCCESS;
    case IS_STRING:
        set_bytes(param,
                  php_jobq_is_utf8(Z_STRVAL_P(value), Z_STRLEN_P(value)) ? JOBQ_PARAM_TEXT
                                                                         : JOBQ_PARAM_BYTES,
                  Z_STR_P(value));
        return SUCCESS;
    case IS_OBJECT:
        return read_object(what, i, value, param);
    default:
        return refuse(what, i, value);
    }
}

static zend_result read_params(const char *what, HashTable *list, php_jobq_statement *out)
{
    zval *value;
    uint32_t i = 0;
    out->params = safe_emalloc(zend_hash_num_elements(list) + 1, sizeof(*out->params), 0);
    memset(out->params, 0, (zend_hash_num_elements(list) + 1) * sizeof(*out->params));
    ZEND_HASH_FOREACH_VAL (list, value) {
        if (read_param(what, i, value, &out->params[i]) == FAILURE) {
            php_jobq_statement_free(out);
            return FAILURE;
        }
        i++;
    }
    ZEND_HASH_FOREACH_END();
    out->statement.params = out->params;
    out->statement.param_count = i;
    return SUCCESS;
}

zend_result php_jobq_statement_read(const char *what, bool alone, zval *value,
                                    php_jobq_statement *out)
{
    memset(out, 0, sizeof(*out));
    ZVAL_DEREF(value);
    if (alone && Z_TYPE_P(value) == IS_STRING) {
        out->statement.text = (jobq_slice){Z_STRVAL_P(value), Z_STRLEN_P(value)};
        return SUCCESS;
    }
    zval *text = Z_TYPE_P(value) == IS_ARRAY ? zend_hash_index_find(Z_ARRVAL_P(value), 0) : NULL;
    zval *params = text ? zend_hash_index_find(Z_ARRVAL_P(value), 1) : NULL;
    if (text) {
        ZVAL_DEREF(text);
    }
    if (params) {
        ZVAL_DEREF(params);
    }
    if (!text || Z_TYPE_P(text) != IS_STRING || (params && Z_TYPE_P(params) != IS_ARRAY) ||
        zend_hash_num_elements(Z_ARRVAL_P(value)) > (params ? 2 : 1)) {
        php_jobq_throw_type("%s: %s[text of the statement, [parameter, ...]] is expected", what,
                            alone ? "a text or " : "");
        return FAILURE;
    }
    out->statement.text = (jobq_slice){Z_STRVAL_P(text), Z_STRLEN_P(text)};
    return params ? read_params(what, Z_ARRVAL_P(params), out) : SUCCESS;
}

void php_jobq_statement_free(php_jobq_statement *statement)
{
    if (statement->params) {
        efree(statement->params);
    }
    memset(statement, 0, sizeof(*statement));
}

void php_jobq_param_make(zval *out, const jobq_param *param)
{
    switch (param->type) {
    case JOBQ_PARAM_INT:
        ZVAL_LONG(out, (zend_long)param->integer);
        break;
    case JOBQ_PARAM_DOUBLE:
        ZVAL_DOUBLE(out, param->real);
        break;
    case JOBQ_PARAM_TEXT:
    case JOBQ_PARAM_BYTES:
        ZVAL_STRINGL(out, param->bytes.n ? (const char *)param->bytes.p : "", param->bytes.n);
        break;
    default:
        ZVAL_NULL(out);
    }
}

void php_jobq_statement_make(zval *out, const jobq_statement *statement)
{
    zval params;
    array_init_size(&params, (uint32_t)statement->param_count);
    for (size_t i = 0; i < statement->param_count; i++) {
        zval value;
        php_jobq_param_make(&value, &statement->params[i]);
        add_next_index_zval(&params, &value);
    }
    array_init_size(out, 2);
    add_next_index_stringl(out, statement->text.p, statement->text.n);
    add_next_index_zval(out, &params);
}

zend_result php_jobq_placeholders(zend_string *word, int *out)
{
    static const struct {
        const char *word;
        int placeholders;
    } words[] = {{"?", JOBQ_PLACEHOLDER_QUESTION}, {"$", JOBQ_PLACEHOLDER_DOLLAR}};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (zend_string_equals_cstr(word, words[i].word, strlen(words[i].word))) {
            *out = words[i].placeholders;
            return SUCCESS;
        }
    }
    php_jobq_throw_usage("placeholders must be \"?\" (PDO, mysqli, SQLite3) or \"$\" "
                         "(pg_query_params), \"%s\" given",
                         ZSTR_VAL(word));
    return FAILURE;
}
