/* SPDX-License-Identifier: MIT
 *
 * Named arguments and option arrays to the library's options. Ranges, defaults and scopes are the
 * library's table; here only kinds of values are told apart.
 */
#include "php_jobqueue.h"

#include <ext/date/php_date.h>
#include <zend_smart_str.h>

static zend_result set_text(jobq_conf *conf, const char *name,
                            int (*set)(jobq_conf *, const char *, const char *, size_t),
                            zval *value)
{
    smart_str text = {0};
    int rc;
    switch (Z_TYPE_P(value)) {
    case IS_STRING:
        rc = set(conf, name, Z_STRVAL_P(value), Z_STRLEN_P(value));
        break;
    case IS_LONG:
        smart_str_append_long(&text, Z_LVAL_P(value));
        smart_str_0(&text);
        rc = set(conf, name, ZSTR_VAL(text.s), ZSTR_LEN(text.s));
        break;
    case IS_DOUBLE:
        smart_str_append_double(&text, Z_DVAL_P(value), 17, false);
        smart_str_0(&text);
        rc = set(conf, name, ZSTR_VAL(text.s), ZSTR_LEN(text.s));
        break;
    default:
        php_jobq_throw_type("%s: a list of strings or numbers is expected, %s in it", name,
                            zend_zval_type_name(value));
        return FAILURE;
    }
    smart_str_free(&text);
    if (rc < 0) {
        php_jobq_throw_last();
        return FAILURE;
    }
    return SUCCESS;
}

/* Takes the option values of that kind? "no" is no bool, 5 no text; a number may be text, as it
 * comes from the environment. An unknown name is for the setter to refuse. */
static zend_result check_kind(jobq_conf *conf, const char *name, int kind, zval *value)
{
    const char *expected =
        jobq_conf_expects(conf, name, kind, kind == JOBQ_VALUE_TEXT ? Z_STRVAL_P(value) : NULL);
    if (!expected ||
        (kind == JOBQ_VALUE_TEXT && !jobq_conf_expects(conf, name, JOBQ_VALUE_NUMBER, NULL))) {
        return SUCCESS;
    }
    php_jobq_throw_type("%s: %s is expected, %s given", name, expected, zend_zval_type_name(value));
    return FAILURE;
}

static int kind_of(const zval *value)
{
    switch (Z_TYPE_P(value)) {
    case IS_FALSE:
    case IS_TRUE:
        return JOBQ_VALUE_BOOL;
    case IS_LONG:
    case IS_DOUBLE:
        return JOBQ_VALUE_NUMBER;
    case IS_STRING:
        return JOBQ_VALUE_TEXT;
    case IS_ARRAY:
        return JOBQ_VALUE_LIST;
    default:
        return JOBQ_VALUE_TIME;
    }
}

/* For values that never reach the library: the name is judged first. */
static zend_result check_option(jobq_conf *conf, const char *name)
{
    if (jobq_conf_check(conf, name) < 0) {
        php_jobq_throw_last();
        return FAILURE;
    }
    return SUCCESS;
}

static zend_result set_list(jobq_conf *conf, const char *name, HashTable *list)
{
    zval *item;
    if (check_option(conf, name) == FAILURE) {
        return FAILURE;
    }
    if (zend_hash_num_elements(list) == 0) {
        php_jobq_throw_usage("%s: the list is empty; leave the option out for its default", name);
        return FAILURE;
    }
    ZEND_HASH_FOREACH_VAL (list, item) {
        ZVAL_DEREF(item);
        if (set_text(conf, name, jobq_conf_add, item) == FAILURE) {
            return FAILURE;
        }
    }
    ZEND_HASH_FOREACH_END();
    return SUCCESS;
}

/* Instants travel as RFC 3339 text in UTC with milliseconds. Whatever lies before 1970 is past. */
static zend_result set_time(jobq_conf *conf, const char *name, zval *value)
{
    int64_t seconds;
    uint32_t microseconds;
    if (check_option(conf, name) == FAILURE) {
        return FAILURE;
    }
    if (!instanceof_function(Z_OBJCE_P(value), php_date_get_interface_ce()) ||
        !php_jobq_time_read(value, &seconds, &microseconds)) {
        php_jobq_throw_type("%s: an object of class %s cannot be used here", name,
                            ZSTR_VAL(Z_OBJCE_P(value)->name));
        return FAILURE;
    }
    char text[64];
    struct tm tm;
    time_t when = (time_t)MAX(seconds, 0);
    if (!php_gmtime_r(&when, &tm) || tm.tm_year > 9999 - 1900) {
        php_jobq_throw_usage("%s: the year must be 9999 at most", name);
        return FAILURE;
    }
    size_t n = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
    n += (size_t)snprintf(text + n, sizeof(text) - n, ".%03uZ", microseconds / 1000);
    if (jobq_conf_set(conf, name, text, n) < 0) {
        php_jobq_throw_last();
        return FAILURE;
    }
    return SUCCESS;
}

zend_result php_jobq_conf_set(jobq_conf *conf, const char *name, zval *value)
{
    int rc = 0;
    ZVAL_DEREF(value);
    if (Z_TYPE_P(value) > IS_NULL && Z_TYPE_P(value) <= IS_ARRAY &&
        check_kind(conf, name, kind_of(value), value) == FAILURE) {
        return FAILURE;
    }
    switch (Z_TYPE_P(value)) {
    case IS_NULL:
        /* null = the default; still, the name must be one that is allowed here */
        return check_option(conf, name);
    case IS_FALSE:
    case IS_TRUE:
        rc = jobq_conf_set_bool(conf, name, Z_TYPE_P(value) == IS_TRUE);
        break;
    case IS_LONG:
        rc = jobq_conf_set_int(conf, name, Z_LVAL_P(value));
        break;
    case IS_DOUBLE:
        rc = jobq_conf_set_double(conf, name, Z_DVAL_P(value));
        break;
    case IS_STRING:
        rc = jobq_conf_set(conf, name, Z_STRVAL_P(value), Z_STRLEN_P(value));
        break;
    case IS_ARRAY:
        return set_list(conf, name, Z_ARRVAL_P(value));
    case IS_OBJECT:
        return set_time(conf, name, value);
    default:
        if (check_option(conf, name) == SUCCESS) {
            php_jobq_throw_type("%s: a %s cannot be used here", name, zend_zval_type_name(value));
        }
        return FAILURE;
    }
    if (rc < 0) {
        php_jobq_throw_last();
        return FAILURE;
    }
    return SUCCESS;
}

zend_result php_jobq_conf_named(jobq_conf *conf, zend_string *name, zval *value)
{
    if (strlen(ZSTR_VAL(name)) != ZSTR_LEN(name)) {
        php_jobq_throw_usage("an option's name holds a NUL byte");
        return FAILURE;
    }
    return php_jobq_conf_set(conf, ZSTR_VAL(name), value);
}

zend_result php_jobq_conf_all(jobq_conf *conf, HashTable *options)
{
    zend_string *name;
    zval *value;
    if (!options) {
        return SUCCESS;
    }
    ZEND_HASH_FOREACH_STR_KEY_VAL (options, name, value) {
        if (!name) {
            php_jobq_throw_usage("options are given by name, not by position");
            return FAILURE;
        }
        if (php_jobq_conf_named(conf, name, value) == FAILURE) {
            return FAILURE;
        }
    }
    ZEND_HASH_FOREACH_END();
    return SUCCESS;
}

/* What is above zero never becomes zero, which would mean "off" or "for ever". */
zend_result php_jobq_seconds(double seconds, const char *what, int64_t *ms_out)
{
    if (!(seconds >= 0) || seconds > 1e12) {
        php_jobq_throw_usage("%s must be a number of seconds, 0 or more", what);
        return FAILURE;
    }
    *ms_out = (int64_t)(seconds * 1000.0 + 0.5);
    if (*ms_out == 0 && seconds > 0)
        *ms_out = 1;
    return SUCCESS;
}

/* "high, default" as a list; blanks round the commas are no part of a name. */
static void split_names(zval *out, zend_string *text)
{
    const char *p = ZSTR_VAL(text), *end = p + ZSTR_LEN(text);
    while (p <= end) {
        const char *comma = memchr(p, ',', (size_t)(end - p));
        const char *stop = comma ? comma : end;
        while (p < stop && *p == ' ') {
            p++;
        }
        const char *last = stop;
        while (last > p && last[-1] == ' ') {
            last--;
        }
        add_next_index_stringl(out, p, (size_t)(last - p));
        p = stop + 1;
    }
}

static zend_result check_name(zval *name)
{
    if (Z_TYPE_P(name) != IS_STRING) {
        php_jobq_throw_type("queues: a list of strings is expected, %s in it",
                            zend_zval_type_name(name));
        return FAILURE;
    }
    if (Z_STRLEN_P(name) == 0 || strlen(Z_STRVAL_P(name)) != Z_STRLEN_P(name)) {
        php_jobq_throw_usage("queues: a queue's name has 1 to 128 bytes and no control characters");
        return FAILURE;
    }
    return SUCCESS;
}

zend_result php_jobq_names_read(php_jobq_names *names, HashTable *list, zend_string *text)
{
    zval *item;
    memset(names, 0, sizeof(*names));
    array_init(&names->list);
    if (text) {
        split_names(&names->list, text);
        list = Z_ARRVAL(names->list);
    }
    names->names = safe_emalloc(zend_hash_num_elements(list) + 1, sizeof(char *), 0);
    ZEND_HASH_FOREACH_VAL (list, item) {
        ZVAL_DEREF(item);
        if (check_name(item) == FAILURE) {
            php_jobq_names_free(names);
            return FAILURE;
        }
        names->names[names->count++] = Z_STRVAL_P(item);
        if (!text) {
            Z_TRY_ADDREF_P(item);
            add_next_index_zval(&names->list, item);
        }
    }
    ZEND_HASH_FOREACH_END();
    return SUCCESS;
}

void php_jobq_names_free(php_jobq_names *names)
{
    if (names->names) {
        efree(names->names);
    }
    zval_ptr_dtor(&names->list);
    memset(names, 0, sizeof(*names));
}

size_t php_jobq_camel(const char *snake, char *out, size_t size)
{
    size_t n = 0;
    for (; *snake && n + 1 < size; snake++) {
        if (*snake == '_' && snake[1]) {
            snake++;
            out[n++] = *snake >= 'a' && *snake <= 'z' ? (char)(*snake - 32) : *snake;
        } else {
            out[n++] = *snake;
        }
    }
    out[n] = '\0';
    return n;
}

zend_string *php_jobq_snake(zend_string *camel)
{
    smart_str out = {0};
    for (size_t i = 0; i < ZSTR_LEN(camel); i++) {
        char c = ZSTR_VAL(camel)[i];
        if (c >= 'A' && c <= 'Z') {
            smart_str_appendc(&out, '_');
            c = (char)(c + 32);
        }
        smart_str_appendc(&out, c);
    }
    return smart_str_extract(&out);
}

double php_jobq_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}
