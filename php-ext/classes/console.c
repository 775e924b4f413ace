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
    zend_result included = include_file(path, out);
    php_jobq_reload_report();
    if (included == FAILURE) {
        php_jobq_reload_report_exception();
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

/* What was known of the store before the application was loaded. */
typedef struct {
    const char *named;  /* by the command line, NULL: by nobody */
    zend_string *shown; /* DSN without its password, NULL: not known */
    int64_t generation; /* -1: not known */
} store_before;

/* The number of restarts is read before the code that they are about (rule L2). Nothing is made
 * here, and a store that cannot be asked is the worker's business. */
static void ask_before(jobq_queue *queue, store_before *before)
{
    const char *shown = jobq_queue_dsn(queue);
    before->shown = zend_string_init(shown, strlen(shown), 0);
    before->generation = jobq_queue_generation(queue);
    if (before->generation < 0) {
        before->generation = -1;
    }
}

/* With "work CONNECTION" `new Queue()` in the file means that connection. Negative: the library's
 * error. */
static int look_before(const char *dsn, store_before *before)
{
    jobq_conf *conf = jobq_conf_new(JOBQ_SCOPE_CONNECTION, JOBQ_STYLE_CAMEL);
    jobq_queue *queue = NULL;
    *before = (store_before){.named = dsn, .generation = -1};
    int rc = conf ? jobq_conf_set(conf, "migrate", ZEND_STRL("false")) : JOBQ_ENOMEM;
    rc = rc < 0 ? rc : jobq_queue_new(dsn, conf, &queue);
    jobq_conf_free(conf);
    if (rc < 0 && dsn) {
        return rc;
    }
    if (queue) {
        ask_before(queue, before);
        jobq_queue_free(queue);
    }
    if (dsn) {
        setenv("JOBQUEUE_DSN", dsn, 1);
    }
    return 0;
}

/* 0, or an exit code: the file uses another store than the command line says. */
static int compare_after(php_jobq_worker *worker, const store_before *before)
{
    jobq_queue *queue = php_jobq_queue_from(Z_OBJ(worker->queue))->queue;
    bool same = before->shown && strcmp(jobq_queue_dsn(queue), ZSTR_VAL(before->shown)) == 0;
    if (same && before->generation >= 0) {
        jobq_worker_set_generation(worker->worker, before->generation);
    } else if (!same && before->named) {
        return usage("error: work CONNECTION: the worker of --bootstrap has a connection of its "
                     "own, %s\n",
                     jobq_queue_dsn(queue));
    }
    return 0;
}

static int run_worker(zval *object, const char *const *queues, size_t count, const jobq_conf *over,
                      const store_before *before)
{
    zval output;
    ZVAL_UNDEF(&output);
    php_jobq_worker *worker = php_jobq_worker_get(object);
    int code = worker && before ? compare_after(worker, before) : 0;
    if (!worker || code != 0) {
        return worker ? code : -1;
    }
    return php_jobq_run(worker, queues, count, over, &output);
}

static int work(void *payload, const char *source, const char *dsn, const char *const *queues,
                size_t count, const jobq_conf *over)
{
    zval *ready = payload, made;
    store_before before;
    if (ready) {
        php_jobq_reload_report();
        int code = run_worker(ready, queues, count, over, NULL);
        return code < 0 ? JOBQ_ECALLBACK : code;
    }
    ZVAL_UNDEF(&made);
    int code = look_before(dsn, &before);
    if (code < 0) {
        return code;
    }
    code = load_worker(source, &made);
    code = code ? code : run_worker(&made, queues, count, over, &before);
    zval_ptr_dtor(&made);
    if (before.shown) {
        zend_string_release(before.shown);
    }
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
