/* SPDX-License-Identifier: MIT
 *
 * What the files of the extension share: classes, objects, and one function per job that more than
 * one file needs. Only error.c throws what the library reports; only callback.c calls user code.
 */
#ifndef PHP_JOBQUEUE_H
#define PHP_JOBQUEUE_H

#include <php.h>
#include <zend_exceptions.h>
#include <zend_interfaces.h>

#include <jobqueue/jobqueue.h>

extern zend_module_entry jobqueue_module_entry;
#define phpext_jobqueue_ptr &jobqueue_module_entry

#if defined(ZTS) && defined(COMPILE_DL_JOBQUEUE)
ZEND_TSRMLS_CACHE_EXTERN()
#endif

typedef struct php_jobq_attempt php_jobq_attempt;

ZEND_BEGIN_MODULE_GLOBALS(jobqueue)
php_jobq_attempt *attempt; /* being run now, NULL outside */
jobq_reader *reader;       /* for decoding; runs no user code, so one is enough */
struct php_jobq_queue *queues;
bool running;        /* a worker runs: one at a time in a process */
HashTable *as_jobs;  /* class name -> what its #[AsJob] says */
uint32_t files_told; /* of the included files, to `work --reload` */
ZEND_END_MODULE_GLOBALS(jobqueue)
ZEND_EXTERN_MODULE_GLOBALS(jobqueue)
#define JQG(v) ZEND_MODULE_GLOBALS_ACCESSOR(jobqueue, v)

/* ---- classes --------------------------------------------------------------------------------- */

extern zend_class_entry *php_jobq_ce_queue, *php_jobq_ce_worker, *php_jobq_ce_next,
    *php_jobq_ce_job, *php_jobq_ce_job_info, *php_jobq_ce_stats, *php_jobq_ce_event,
    *php_jobq_ce_console, *php_jobq_ce_bigint, *php_jobq_ce_bytes, *php_jobq_ce_as_job,
    *php_jobq_ce_state;
extern zend_class_entry *php_jobq_ce_exception_interface, *php_jobq_ce_not_retryable,
    *php_jobq_ce_queue_exception, *php_jobq_ce_connection, *php_jobq_ce_outcome_unknown,
    *php_jobq_ce_duplicate, *php_jobq_ce_lease_lost, *php_jobq_ce_payload, *php_jobq_ce_not_found,
    *php_jobq_ce_timeout, *php_jobq_ce_stop, *php_jobq_ce_retry_after, *php_jobq_ce_full,
    *php_jobq_ce_guard, *php_jobq_ce_dead, *php_jobq_ce_wait;

void php_jobq_register_exceptions(void);
void php_jobq_register_queue(void);
void php_jobq_register_worker(void);
void php_jobq_register_next(void);
void php_jobq_register_job(void);
void php_jobq_register_job_info(void);
void php_jobq_register_stats(void);
void php_jobq_register_event(void);
void php_jobq_register_console(void);
void php_jobq_register_numbers(void);
void php_jobq_register_as_job(void);
void php_jobq_register_state(void);

typedef struct php_jobq_queue {
    jobq_queue *queue;
    struct php_jobq_queue *next, **link; /* every one of the request */
    jobq_message *message;               /* reused by every push */
    jobq_conf *extras; /* push options in PHP's spelling, NULL until some are given */
    zval listeners;    /* event name -> list of callables, or undefined */
    zval places;       /* last ids of pages given out -> the store's cursors */
    zend_object std;
} php_jobq_queue;

typedef struct {
    zend_string *name;
    zend_long version;
    zval callable;            /* a callable, or a string that is a class's or service's name */
    zval failed;              /* the option: a callable, or undefined */
    zend_class_entry *as_job; /* rebuild its object from the payload, NULL otherwise */
} php_jobq_handler;

typedef struct {
    jobq_worker *worker;
    zval queue;                 /* the Queue object: outlives the worker */
    php_jobq_handler *handlers; /* in the order in which the library knows them */
    uint32_t handler_count, handler_room;
    zval resolver, middleware, listeners;
    zval output;         /* the constructor's, when it is a stream or a callable */
    zval line;           /* the callable in force while it runs */
    bool muted, broken;  /* broken: a fatal error in it ends the process as soon as that can be */
    int exit_status;     /* what user code called exit with, inline */
    bool child, started; /* started: child.started was fired in this process, inline */
    zend_object std;
} php_jobq_worker;

/* HANDLER: settled by the loop when the handler has ended. RESERVED: settles at once. EVENT: only
 * to look at. */
enum { PHP_JOBQ_HANDLER, PHP_JOBQ_RESERVED, PHP_JOBQ_EVENT };

typedef struct {
    jobq_job *job; /* NULL once it has ended */
    int kind;
    bool decided; /* release, fail or delete was called */
    bool lost;    /* RESERVED: the store has refused its token */
    jobq_ending decision;
    int64_t delay_ms;
    zval defers; /* list of callables, or undefined */
    zval queue;  /* RESERVED: the Queue object it came from */
    zend_object std;
} php_jobq_job;

#define PHP_JOBQ_FROM(type, object) ((type *)((char *)(object)-offsetof(type, std)))
#define php_jobq_queue_from(object) PHP_JOBQ_FROM(php_jobq_queue, object)
#define php_jobq_worker_from(object) PHP_JOBQ_FROM(php_jobq_worker, object)
#define php_jobq_job_from(object) PHP_JOBQ_FROM(php_jobq_job, object)

/* The constructed handle of a Queue or Worker object; NULL with an Error thrown when there is none.
 */
php_jobq_queue *php_jobq_queue_get(zval *object);
php_jobq_worker *php_jobq_worker_get(zval *object);
/* Closes the connections of every Queue (they open again on next use): none may be open across a
 * fork. */
void php_jobq_queues_disconnect(void);

/* Takes over the payload. The job is borrowed (HANDLER, EVENT) or the object's own (RESERVED). */
void php_jobq_job_make(zval *out, jobq_job *job, int kind, zval *payload);
/* Cuts the object off from a job that has ended. */
void php_jobq_job_detach(php_jobq_job *job);
void php_jobq_job_info_make(zval *out, const jobq_info *info);
void php_jobq_job_info_make_bare(zval *out, const jobq_info *info); /* without its payload */
/* A dead job's last error as an exception, null when it has none. */
void php_jobq_recorded_make(zval *out, const jobq_info *info);
/* minutes: NULL and 0 = none. */
void php_jobq_stats_make(zval *out, const char *name, size_t n, const int64_t *values,
                         const jobq_minute_stats *minutes, size_t minute_count);
/* Borrows job and data (NULL: none). */
void php_jobq_event_make(zval *out, const char *name, zval *job, const char *queue, size_t queue_n,
                         const char *connection, zval *data);
void php_jobq_state_make(zval *out, jobq_state state);
bool php_jobq_state_value(zend_object *state, jobq_state *out);
/* Sets the i-th declared property of a new object; takes the value over. */
static inline void php_jobq_init_property(zend_object *object, uint32_t i, zval *value)
{
    ZVAL_COPY_VALUE(OBJ_PROP_NUM(object, i), value);
}

/* ---- error.c --------------------------------------------------------------------------------- */

/* The error as an exception object; NULL = the last one. Usage errors become \ValueError. */
void php_jobq_error_make(zval *out, const jobq_error *err);
void php_jobq_throw(const jobq_error *err);
void php_jobq_throw_last(void);
void php_jobq_throw_usage(const char *fmt, ...) ZEND_ATTRIBUTE_FORMAT(printf, 1, 2);
void php_jobq_throw_type(const char *fmt, ...) ZEND_ATTRIBUTE_FORMAT(printf, 1, 2);
void php_jobq_throw_logic(const char *fmt, ...) ZEND_ATTRIBUTE_FORMAT(printf, 1, 2);
void php_jobq_throw_unsupported(const char *fmt, ...) ZEND_ATTRIBUTE_FORMAT(printf, 1, 2);
void php_jobq_throw_payload(zend_string *path, const char *fmt, ...)
    ZEND_ATTRIBUTE_FORMAT(printf, 2, 3);
void php_jobq_throw_not_found(zval *ids, const char *fmt, ...) ZEND_ATTRIBUTE_FORMAT(printf, 2, 3);
void php_jobq_throw_duplicate(const char *id, const char *fmt, ...)
    ZEND_ATTRIBUTE_FORMAT(printf, 2, 3);
void php_jobq_throw_interrupt(int kind, jobq_job *job);
void php_jobq_throw_lease_lost(void);
/* Of one item among many: the pending exception, which is pending no longer. */
void php_jobq_error_take(zval *out);
/* After jobq_queue_wait: JOBQ_EDEAD, JOBQ_EPENDING or another code as exception. */
void php_jobq_throw_wait(int rc, const char *id, const jobq_info *info);
/* Sets the error code of a QueueException. */
void php_jobq_error_code(zend_object *exception, const char *word);

/* ---- conf.c ---------------------------------------------------------------------------------- */

/* Each throws and returns FAILURE on a value or name that is not allowed. null sets nothing. */
zend_result php_jobq_conf_set(jobq_conf *conf, const char *name, zval *value);
zend_result php_jobq_conf_named(jobq_conf *conf, zend_string *name, zval *value);
zend_result php_jobq_conf_all(jobq_conf *conf, HashTable *options);
/* Seconds to milliseconds: not negative, not NaN. */
zend_result php_jobq_seconds(double seconds, const char *what, int64_t *ms_out);

/* "retry_until" -> "retryUntil", as array keys are spelled here; the length. */
size_t php_jobq_camel(const char *snake, char *out, size_t size);
zend_string *php_jobq_snake(zend_string *camel); /* the way back */
double php_jobq_now(void);                       /* monotonic, seconds */

typedef struct {
    const char **names;
    zval list; /* owns the strings */
    size_t count;
} php_jobq_names;
/* "high,default" or a list of strings. */
zend_result php_jobq_names_read(php_jobq_names *names, HashTable *list, zend_string *text);
void php_jobq_names_free(php_jobq_names *names);

/* ---- value_write.c, value_read.c ------------------------------------------------------------- */

/* Throws PayloadException with the path of what cannot be queued. */
zend_result php_jobq_encode(jobq_writer *w, zval *value);
zend_result php_jobq_encode_member(jobq_writer *w, zend_string *key, zval *value);
/* What is kept of a job that is done (rule N7); nothing for one that is not kept. FAILURE:
 * thrown. */
zend_result php_jobq_result_set(jobq_job *job, zval *result);
/* The same for what a handler returned: what cannot be kept is noted with the job. */
void php_jobq_result_keep(jobq_job *job, zval *result);
bool php_jobq_is_utf8(const char *p, size_t n);
bool php_jobq_is_decimal(const char *p, size_t n);
/* Microseconds since 1970; false for an object that is not initialised. */
bool php_jobq_time_read(zval *object, int64_t *seconds_out, uint32_t *microseconds_out);
/* 0, or a negative code with the library's error set; never throws. */
int php_jobq_decode(int format, const void *p, size_t n, bool maps_as_objects, zval *out);
void php_jobq_time_make(zval *out, int64_t seconds, uint32_t microseconds);
void php_jobq_time_from_ms(zval *out, int64_t ms); /* 0 = null */
void php_jobq_bigint_make(zval *out, uint64_t value);

/* ---- callback.c: user code under guard ------------------------------------------------------- */

/* RETURNED; THREW: EG(exception) is pending; EXITED: it called exit, *status_out; FATAL: nothing
 * may run. */
typedef enum {
    PHP_JOBQ_RETURNED,
    PHP_JOBQ_THREW,
    PHP_JOBQ_EXITED,
    PHP_JOBQ_FATAL
} php_jobq_outcome;

/* Once, before the first guard. */
void php_jobq_guard_startup(void);
/* Runs body under zend_try. A process that user code forked off does not come back from here. */
php_jobq_outcome php_jobq_guard(void (*body)(void *argument), void *argument, int *status_out);
/* Calls it with at most as many arguments as an internal function declares. FAILURE: thrown. */
zend_result php_jobq_call(zval *callable, uint32_t n, zval *arguments, zval *result);
/* The last PHP error's text into a buffer, without allocating. */
size_t php_jobq_last_error(char *out, size_t size);
/* One line to PHP's error log about an exception nobody can catch; the exception is gone after. */
void php_jobq_report_exception(const char *where);
void php_jobq_report(const char *fmt, ...) ZEND_ATTRIBUTE_FORMAT(printf, 1, 2);
/* Ends this process without running anything more, output flushed. */
ZEND_COLD void php_jobq_leave(int status);
void php_jobq_end_output(void);

/* ---- events.c -------------------------------------------------------------------------------- */

/* Adds a listener; throws on an unknown event. `producer`: those of a Queue, else those of a
 * Worker. */
zend_result php_jobq_listen(zval *listeners, zend_string *name, zval *callable, bool producer);
static inline zval *php_jobq_listeners(zval *listeners, const char *name, size_t n)
{
    return Z_TYPE_P(listeners) == IS_ARRAY ? zend_hash_str_find(Z_ARRVAL_P(listeners), name, n)
                                           : NULL;
}
/* Calls them in order. `strict`: the first throw ends it and stays pending; else throws are
 * reported. */
php_jobq_outcome php_jobq_fire(zval *listeners, const char *name, zval *job, const char *queue,
                               size_t queue_n, const char *connection, zval *data, bool strict,
                               int *status_out);

/* Asks the listeners of `looping`: *vetoed_out is set when one returned false. */
php_jobq_outcome php_jobq_ask(zval *listeners, const char *name, const char *connection,
                              bool *vetoed_out, int *status_out);

/* A parameter that is true or false: never what is merely true, whatever strict_types says. */
#define PHP_JOBQ_PARAM_FLAG(dest)                                  \
    Z_PARAM_PROLOGUE(0, 0);                                        \
    if (Z_TYPE_P(_arg) != IS_TRUE && Z_TYPE_P(_arg) != IS_FALSE) { \
        _expected_type = Z_EXPECTED_BOOL;                          \
        _error_code = ZPP_ERROR_WRONG_ARG;                         \
        break;                                                     \
    }                                                              \
    (dest) = Z_TYPE_P(_arg) == IS_TRUE;

/* ---- statement.c ----------------------------------------------------------------------------- */

typedef struct {
    jobq_statement statement; /* its texts are the zval's */
    jobq_param *params;
} php_jobq_statement;
/* [text, [parameter, ...]], the parameters may be left out; `alone`: the text by itself is taken,
 * too. `what` is named in the error. FAILURE: thrown, nothing to free. */
zend_result php_jobq_statement_read(const char *what, bool alone, zval *value,
                                    php_jobq_statement *out);
void php_jobq_statement_free(php_jobq_statement *statement);
void php_jobq_statement_make(zval *out, const jobq_statement *statement);
void php_jobq_param_make(zval *out, const jobq_param *param);
/* The argument `placeholders`. FAILURE: thrown. */
zend_result php_jobq_placeholders(zend_string *word, int *out);

/* ---- push.c ---------------------------------------------------------------------------------- */

/* Makes a message of a name and payload or of a job object. */
zend_result php_jobq_message_fill(jobq_message *m, zval *job, zval *payload);
zend_result php_jobq_message_context(jobq_message *m, HashTable *context);
/* An option by its name, between begin and end of the extras: the library's, context or guard. */
zend_result php_jobq_message_option(php_jobq_queue *queue, jobq_message *m, zend_string *name,
                                    zval *value);
/* Push options as PHP spells them gather in queue->extras between begin and end. */
zend_result php_jobq_extras_begin(php_jobq_queue *queue);
zend_result php_jobq_extras_end(php_jobq_queue *queue, jobq_message *m);
void php_jobq_fire_pushed(php_jobq_queue *queue, const jobq_message *m, zval *job);

/* ---- as_job.c, as_job_build.c ---------------------------------------------------------------- */

enum {
    PHP_JOBQ_AS_NAME,
    PHP_JOBQ_AS_QUEUE,
    PHP_JOBQ_AS_TRIES,
    PHP_JOBQ_AS_TIMEOUT,
    PHP_JOBQ_AS_BACKOFF,
    PHP_JOBQ_AS_PRIORITY,
    PHP_JOBQ_AS_DELAY,
    PHP_JOBQ_AS_EXPIRES,
    PHP_JOBQ_AS_VERSION,
    PHP_JOBQ_AS_UNIQUE,
    PHP_JOBQ_AS_FIELDS
};
extern const char *const php_jobq_as_words[PHP_JOBQ_AS_FIELDS];

typedef struct {
    zval fields[PHP_JOBQ_AS_FIELDS]; /* undefined = not given */
} php_jobq_as_job;

/* What the class's attribute says (kept for the request); throws when it has none. */
const php_jobq_as_job *php_jobq_as_job_of(zend_class_entry *ce);
zend_result php_jobq_as_job_fill(jobq_message *m, zend_object *object);
/* A new object from the payload. FAILURE with *misfit_out: the value fits no parameter (text as
 * exception); FAILURE without: the constructor threw. */
zend_result php_jobq_as_job_build(zend_class_entry *ce, zval *payload, zval *out, bool *misfit_out);

/* ---- handler.c, attempt.c, fault.c, folder.c ------------------------------------------------- */

struct php_jobq_attempt {
    php_jobq_worker *worker;
    jobq_job *job;
    zval object; /* the Job */
    zval payload;
    zval spec;    /* as registered or from the resolver: callable, object, or a class's name */
    zval handler; /* what is called */
    zend_class_entry *as_job; /* build the handler's object from the payload */
    int decoded;              /* what php_jobq_decode answered */
    bool has_handler, misfit; /* misfit: the payload fits no constructor parameter */
    bool settled;
    int interrupt;        /* JOBQ_INTERRUPT_* that was thrown into it */
    bool exited, decided; /* exited: user code called exit() */
    jobq_ending ending;
    int64_t delay_ms;
    zval exception; /* what came out of the handler, for listeners */
    int output_level;
    zend_long time_limit; /* PHP's own, before it */
    char *folder;         /* before its first chdir(), NULL: it has called none */
    php_jobq_attempt *outer;
};

/* What is to run: a->has_handler says whether anything is known for the name. FAILURE: thrown. */
zend_result php_jobq_handler_find(php_jobq_attempt *a);
/* Makes the callable of it: a class's new object, a job object from its payload. FAILURE: thrown.
 */
zend_result php_jobq_handler_build(php_jobq_attempt *a);
/* Calls it inside the middleware. FAILURE: thrown. */
zend_result php_jobq_handler_run(php_jobq_attempt *a);
/* The middleware from that position on, the handler behind the last. */
zend_result php_jobq_chain_run(php_jobq_attempt *a, uint32_t position, zval *payload, zval *result);
/* The closure given to a middleware as its $next. */
void php_jobq_next_make(zval *out, php_jobq_attempt *a, uint32_t position, zval *payload);

/* Runs one job to its end and settles it. */
php_jobq_outcome php_jobq_attempt_run(php_jobq_worker *worker, jobq_job *job);
/* How a step of user code went: true: go on with the next one. */
bool php_jobq_attempt_conclude(php_jobq_attempt *a, php_jobq_outcome outcome, int status);
/* Sets an attempt up, and after its last step frees what it made and settles it. */
void php_jobq_attempt_begin(php_jobq_attempt *a, php_jobq_worker *worker, jobq_job *job);
php_jobq_outcome php_jobq_attempt_finish(php_jobq_attempt *a);
/* failed.c: a dead job's failed hook and the event job.failed (rule F6). */
php_jobq_outcome php_jobq_failed_run(php_jobq_worker *worker, jobq_job *job);
/* Called by the VM between two instructions of user code. */
void php_jobq_attempt_interrupt(php_jobq_attempt *a);
/* Puts an exception into the job's error record; runs no user code. */
void php_jobq_fault_set(jobq_job *job, zend_object *exception);
void php_jobq_fault_text(jobq_job *job, const char *class_name, const char *text, size_t n);
/* Between them chdir() notes where the running job was; back there when it has ended. */
void php_jobq_folder_startup(void);
void php_jobq_folder_shutdown(void);
void php_jobq_folder_restore(php_jobq_attempt *a);

/* ---- output.c -------------------------------------------------------------------------------- */

/* The option `output` when it is a stream or a callable, else undefined. FAILURE: thrown. */
zend_result php_jobq_output_take(HashTable *options, zval *out);
/* Before a run, and after it. */
zend_result php_jobq_output_apply(php_jobq_worker *worker, zval *output);
void php_jobq_output_release(php_jobq_worker *worker);
void php_jobq_output_reopen(void);

/* ---- lists.c --------------------------------------------------------------------------------- */

/* The i-th counter of an object; its name is set, or left alone behind the last one. */
typedef int64_t (*php_jobq_counter)(const void *of, size_t i, const char **name);
void php_jobq_counters(zval *out, php_jobq_counter next, const void *of);

typedef struct {
    const char *key, *value;
    size_t key_n, value_n;
} php_jobq_pair;

/* next: false behind the last pair. */
void php_jobq_context(zval *out, bool (*next)(const void *of, size_t i, php_jobq_pair *pair),
                      const void *of);

/* ---- run.c ----------------------------------------------------------------------------------- */

/* Exit code, or -1 with an exception pending. In a child it does not return. output: of this run,
 * undefined = the constructor's. */
int php_jobq_run(php_jobq_worker *worker, const char *const *queues, size_t count,
                 const jobq_conf *over, zval *output);
/* 1 there was a job, 0 there was none, -1 with an exception pending. */
int php_jobq_run_next(php_jobq_worker *worker, const char *const *queues, size_t count);
zend_result php_jobq_run_hooks(jobq_worker *worker);
/* A fatal error: tells the library; then leaves (child) or unwinds (elsewhere). Does not return. */
ZEND_COLD void php_jobq_fatal(php_jobq_worker *worker);

/* ---- reload.c -------------------------------------------------------------------------------- */

void php_jobq_reload_report(void);
void php_jobq_reload_report_exception(void);

#endif
