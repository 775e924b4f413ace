/* SPDX-License-Identifier: MIT
 *
 * Console: the library's command line with PHP handlers behind `work`.
 */
#include "php_jobqueue.h"

#include <jobqueue/console.h>

#include <unistd.h>

#include "console_arginfo.h"

zend_class_entry *php_jobq_ce_console;

ZEND_METHOD(JobQueue_Console, __construct)
{
    ZEND_PARSE_PARAMETERS_NONE();
}

/* A usage error of the command line: one line on stderr, exit code 2 (rule J1). */
static int usage(const char *fmt, const char *what)
{
    char line[MAXPATHLEN + 256];
    int n = snprintf(line, sizeof(line), fmt, what);
    size_t length = n < 0 ? 0 : MIN((size_t)n, sizeof(line) - 1);
    if (write(STDERR_FILENO, line, length) < 0) {
        return 2; /* nobody listens; the exit code says it */
    }
    return 2;
}

/* ---- --bootstrap=FILE ------------------------------------------------------------------------ */

static zend_result include_file(const char *path, zval *result)
{
    zend_file_handle handle;
    ZVAL_UNDEF(result);
    zend_stream_init_filename(&handle, path);
    zend_op_array *code = zend_compile_file(&handle, ZEND_REQUIRE);
    if (code && handle.handle.stream.handle) {
        zend_string *opened = handle.opened_path ? zend_string_copy(handle.opened_path)
                                                 : zend_string_init(path, strlen(path), 0);
        zend_hash_add_empty_element(&EG(included_files), opened);
        zend_string_release(opened);
    }
    zend_destroy_file_handle(&handle);
    if (!code) {
        return FAILURE;
    }
    zend_execute(code, result);
    destroy_op_array(code);
    efree_size(code, sizeof(zend_op_array));
    return EG(exception) ? FAILURE : SUCCESS;
}

/* Negative: thrown. */
static int load_worker(const char *source, zval *out)
{
    char path[MAXPATHLEN];
    if (!source) {
        return usage("error: work needs %s, a file that returns a JobQueue\\Worker\n",
                     "--bootstrap=FILE");
    }
    zend_stat_t st;
    if (!VCWD_REALPATH(source, path) || VCWD_ACCESS(path, R_OK) != 0 || VCWD_STAT(path, &st) != 0 ||
        S_ISDIR(st.st_mode)) {
        return usage("error: --bootstrap: cannot read the file \"%s\"\n", source);
    }
    if (include_file(path, out) == FAILURE) {
        return -1;
    }
    if (Z_TYPE_P(out) != IS_OBJECT || Z_OBJCE_P(out) != php_jobq_ce_worker) {
        zval_ptr_dtor(out);
        return usage("error: --bootstrap: the file \"%s\" does not return a JobQueue\\Worker\n",
                     source);
    }
    return 0;
}

/* ---- work ------------------------------------------------------------------------------------ */

static int work(void *payload, const char *source, const char *dsn, const char *const *queues,
                size_t count, const jobq_conf *over)
{
    zval *ready = payload, made, output;
    ZVAL_UNDEF(&made);
    ZVAL_UNDEF(&output);
    if (ready && source) {
        return usage("error: %s is not used here: the program brings its own worker\n",
                     "--bootstrap");
    }
    if (dsn) {
        return usage("error: work takes no store here: the worker of %s has its own connection\n",
                     "--bootstrap");
    }
    int rc = ready ? 0 : load_worker(source, &made);
    if (rc != 0) {
        return rc < 0 ? JOBQ_ECALLBACK : rc;
    }
    php_jobq_worker *worker = php_jobq_worker_get(ready ? ready : &made);
    int code = worker ? php_jobq_run(worker, queues, count, over, &output) : -1;
    zval_ptr_dtor(&made);
    return code < 0 ? JOBQ_ECALLBACK : code;
}

/* ---- run ------------------------------------------------------------------------------------- */

static char **make_argv(HashTable *list, int *argc_out)
{
    char **argv = safe_emalloc(zend_hash_num_elements(list) + 1, sizeof(*argv), 0);
    zval *item;
    int n = 0;
    ZEND_HASH_FOREACH_VAL (list, item) {
        ZVAL_DEREF(item);
        if (Z_TYPE_P(item) != IS_STRING || strlen(Z_STRVAL_P(item)) != Z_STRLEN_P(item)) {
            php_jobq_throw_type("argv: a list of strings without NUL bytes is expected");
            efree(argv);
            return NULL;
        }
        argv[n++] = Z_STRVAL_P(item);
    }
    ZEND_HASH_FOREACH_END();
    argv[n] = NULL;
    *argc_out = n;
    return argv;
}

/* What usage texts call the program: php -r and a script on standard input have no name to give. */
static const char *program_name(int argc, char *const *argv)
{
    static const char *const nameless[] = {"", "-", "Standard input code", "Command line code"};
    if (argc < 1) {
        return "jobqueue";
    }
    for (size_t i = 0; i < sizeof(nameless) / sizeof(nameless[0]); i++) {
        if (strcmp(argv[0], nameless[i]) == 0) {
            return "jobqueue";
        }
    }
    return argv[0];
}

ZEND_METHOD(JobQueue_Console, run)
{
    HashTable *list;
    zval *ready = NULL;
    int argc;
    ZEND_PARSE_PARAMETERS_START(1, 2)
        Z_PARAM_ARRAY_HT(list)
        Z_PARAM_OPTIONAL
        Z_PARAM_OBJECT_OF_CLASS_OR_NULL(ready, php_jobq_ce_worker)
    ZEND_PARSE_PARAMETERS_END();
    php_jobq_worker *worker = ready ? php_jobq_worker_get(ready) : NULL;
    char **argv = EG(exception) ? NULL : make_argv(list, &argc);
    if (!argv) {
        RETURN_THROWS();
    }
    const jobq_console console = {
        .size = sizeof(console),
        .program = program_name(argc, argv),
        .payload = ready,
        .source_option = ready ? NULL : "bootstrap",
        .source_meaning = ready ? NULL : "FILE: a PHP file that returns a JobQueue\\Worker",
        .ready_worker = worker ? worker->worker : NULL,
        .work = work,
        .runtime = "php " PHP_VERSION,
    };
    RETVAL_LONG(jobq_console_main(&console, argc, argv));
    efree(argv);
}

void php_jobq_register_console(void)
{
    php_jobq_ce_console = register_class_JobQueue_Console();
}
