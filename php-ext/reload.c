/* SPDX-License-Identifier: MIT
 *
 * What `work --reload` has to know: the files of get_included_files(), told as they are loaded.
 */
#include "php_jobqueue.h"

#include <jobqueue/console.h>

#include <zend_exceptions.h>

/* Only those that came since the last call; PHP appends to the list. A fork goes on where its
 * parent was. */
void php_jobq_reload_report(void)
{
    if (EXPECTED(!jobq_console_reloads())) {
        return;
    }
    uint32_t at = 0;
    zend_string *path;
    ZEND_HASH_FOREACH_STR_KEY(&EG(included_files), path)
    {
        if (path && at++ >= JQG(files_told)) {
            jobq_console_loaded(ZSTR_VAL(path), ZSTR_LEN(path));
        }
    }
    ZEND_HASH_FOREACH_END();
    JQG(files_told) = at;
}

/* A file that could not be compiled is in no list: its exception names it. */
void php_jobq_reload_report_exception(void)
{
    zval room;
    if (!jobq_console_reloads() || !EG(exception)) {
        return;
    }
    zval *file = zend_read_property_ex(zend_get_exception_base(EG(exception)), EG(exception),
                                       ZSTR_KNOWN(ZEND_STR_FILE), true, &room);
    if (Z_TYPE_P(file) == IS_STRING) {
        jobq_console_loaded(Z_STRVAL_P(file), Z_STRLEN_P(file));
    }
}
