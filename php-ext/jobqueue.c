/* SPDX-License-Identifier: MIT
 *
 * The module: registration of the classes, per-request state, the VM interrupt.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "php_jobqueue.h"

#include <dlfcn.h>
#include <ext/standard/info.h>

ZEND_DECLARE_MODULE_GLOBALS(jobqueue)

static void (*previous_interrupt)(zend_execute_data *execute_data);

/* The VM calls this between two instructions of user code, never inside of ours. */
static void interrupt_vm(zend_execute_data *execute_data)
{
    if (previous_interrupt) {
        previous_interrupt(execute_data);
    }
    if (!JQG(attempt)) {
        return;
    }
    if (EG(exception)) {
        zend_atomic_bool_store_ex(&EG(vm_interrupt), true);
        return;
    }
    php_jobq_attempt_interrupt(JQG(attempt));
}

/* What the loader finds may be another library than the one at compile time: it looks into
 * /usr/local/lib first. A newer one of the same soname keeps the interface, an older one may lack
 * what is called here. */
static bool library_is_old(void)
{
    Dl_info where = {0};
    if (jobq_version_number() >= JOBQ_VERSION_NUMBER) {
        return false;
    }
    dladdr((void *)(uintptr_t)jobq_version, &where);
    zend_error(E_CORE_WARNING,
               "jobqueue: this is the extension of %s, and the libjobqueue that was loaded is "
               "older: %s (%s); remove that one, or install libjobqueue %s there",
               JOBQ_VERSION, jobq_version(), where.dli_fname ? where.dli_fname : "?", JOBQ_VERSION);
    return true;
}

static PHP_MINIT_FUNCTION(jobqueue)
{
    if (library_is_old()) {
        return FAILURE;
    }
    php_jobq_register_exceptions();
    php_jobq_register_numbers();
    php_jobq_register_state();
    php_jobq_register_as_job();
    php_jobq_register_job();
    php_jobq_register_job_info();
    php_jobq_register_stats();
    php_jobq_register_event();
    php_jobq_register_queue();
    php_jobq_register_next();
    php_jobq_register_worker();
    php_jobq_register_console();
    php_jobq_guard_startup();
    php_jobq_folder_startup();
    previous_interrupt = zend_interrupt_function;
    zend_interrupt_function = interrupt_vm;
    return SUCCESS;
}

static PHP_MSHUTDOWN_FUNCTION(jobqueue)
{
    php_jobq_folder_shutdown();
    if (zend_interrupt_function == interrupt_vm) {
        zend_interrupt_function = previous_interrupt;
    }
    return SUCCESS;
}

static PHP_GINIT_FUNCTION(jobqueue)
{
#if defined(COMPILE_DL_JOBQUEUE) && defined(ZTS)
    ZEND_TSRMLS_CACHE_UPDATE();
#endif
    memset(jobqueue_globals, 0, sizeof(*jobqueue_globals));
}

static PHP_RINIT_FUNCTION(jobqueue)
{
#if defined(COMPILE_DL_JOBQUEUE) && defined(ZTS)
    ZEND_TSRMLS_CACHE_UPDATE();
#endif
    JQG(attempt) = NULL;
    JQG(queues) = NULL;
    JQG(running) = false;
    return SUCCESS;
}

static PHP_RSHUTDOWN_FUNCTION(jobqueue)
{
    JQG(attempt) = NULL;
    jobq_reader_free(JQG(reader));
    JQG(reader) = NULL;
    if (JQG(as_jobs)) {
        zend_hash_destroy(JQG(as_jobs));
        FREE_HASHTABLE(JQG(as_jobs));
        JQG(as_jobs) = NULL;
    }
    return SUCCESS;
}

static PHP_MINFO_FUNCTION(jobqueue)
{
    char drivers[256] = "";
    for (size_t i = 0; jobq_driver_name(i); i++) {
        size_t used = strlen(drivers);
        snprintf(drivers + used, sizeof(drivers) - used, "%s%s", i ? ", " : "",
                 jobq_driver_name(i));
    }
    php_info_print_table_start();
    php_info_print_table_row(2, "Job queue", "enabled");
    php_info_print_table_row(2, "Extension version", JOBQ_VERSION);
    php_info_print_table_row(2, "Library version", jobq_version());
    php_info_print_table_row(2, "Drivers", drivers);
    php_info_print_table_end();
}

static const zend_module_dep dependencies[] = {ZEND_MOD_REQUIRED("date") ZEND_MOD_REQUIRED(
    "standard") ZEND_MOD_OPTIONAL("pcntl") ZEND_MOD_END};

zend_module_entry jobqueue_module_entry = {STANDARD_MODULE_HEADER_EX,
                                           NULL,
                                           dependencies,
                                           "jobqueue",
                                           NULL,
                                           PHP_MINIT(jobqueue),
                                           PHP_MSHUTDOWN(jobqueue),
                                           PHP_RINIT(jobqueue),
                                           PHP_RSHUTDOWN(jobqueue),
                                           PHP_MINFO(jobqueue),
                                           JOBQ_VERSION,
                                           PHP_MODULE_GLOBALS(jobqueue),
                                           PHP_GINIT(jobqueue),
                                           NULL,
                                           NULL,
                                           STANDARD_MODULE_PROPERTIES_EX};

#ifdef COMPILE_DL_JOBQUEUE
#ifdef ZTS
ZEND_TSRMLS_CACHE_DEFINE()
#endif
ZEND_GET_MODULE(jobqueue)
#endif
