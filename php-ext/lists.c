/* SPDX-License-Identifier: MIT
 *
 * What the library lists one by one, as PHP arrays.
 */
#include "php_jobqueue.h"

void php_jobq_counters(zval *out, php_jobq_counter next, const void *of)
{
    array_init(out);
    for (size_t i = 0;; i++) {
        const char *name = NULL;
        char spelled[64];
        zval value;
        ZVAL_LONG(&value, (zend_long)next(of, i, &name));
        if (!name) {
            return;
        }
        zend_hash_str_update(Z_ARRVAL_P(out), spelled,
                             php_jobq_camel(name, spelled, sizeof(spelled)), &value);
    }
}

void php_jobq_context(zval *out, bool (*next)(const void *of, size_t i, php_jobq_pair *pair),
                      const void *of)
{
    php_jobq_pair pair;
    ZVAL_EMPTY_ARRAY(out);
    for (size_t i = 0; next(of, i, &pair); i++) {
        zval text;
        if (i == 0) {
            array_init(out);
        }
        ZVAL_STRINGL(&text, pair.value, pair.value_n);
        zend_symtable_str_update(Z_ARRVAL_P(out), pair.key, pair.key_n, &text);
    }
}
