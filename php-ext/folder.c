/* SPDX-License-Identifier: MIT
 *
 * A handler's chdir() must not lead the next job astray (rule D7). Where it was is noted when
 * chdir() is called, so that jobs which stay where they are cost nothing.
 */
#include "php_jobqueue.h"

#include <Zend/zend_virtual_cwd.h>

static zif_handler plain_chdir;

static zend_internal_function *chdir_function(void)
{
    zend_function *f = zend_hash_str_find_ptr(CG(function_table), ZEND_STRL("chdir"));
    return f && f->type == ZEND_INTERNAL_FUNCTION ? &f->internal_function : NULL;
}

static ZEND_NAMED_FUNCTION(noting_chdir)
{
    php_jobq_attempt *a = JQG(attempt);
    char path[MAXPATHLEN];
    if (a && !a->folder && VCWD_GETCWD(path, sizeof(path))) {
        a->folder = estrdup(path);
    }
    plain_chdir(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

void php_jobq_folder_startup(void)
{
    zend_internal_function *f = chdir_function();
    if (f) {
        plain_chdir = f->handler;
        f->handler = noting_chdir;
    }
}

void php_jobq_folder_shutdown(void)
{
    zend_internal_function *f = chdir_function();
    if (f && f->handler == noting_chdir) {
        f->handler = plain_chdir;
    }
}

void php_jobq_folder_restore(php_jobq_attempt *a)
{
    if (!a->folder) {
        return;
    }
    if (VCWD_CHDIR(a->folder) != 0) {
        php_jobq_report("jobqueue: cannot go back to the folder \"%s\" after job %s", a->folder,
                        jobq_job_id(a->job));
    }
    efree(a->folder);
    a->folder = NULL;
}
