/* SPDX-License-Identifier: MIT
 *
 * Job: what the handler gets, or Queue::reserve() gives out. In a handler release, fail and delete
 * only note what shall become of the job (rule D3); after reserve they act at once.
 */
#include "php_jobqueue.h"

#include "job_arginfo.h"

zend_class_entry *php_jobq_ce_job;
static zend_object_handlers handlers;

/* The declared properties in the order of the stub; the numbers stand together. */
enum {
    P_ID,
    P_NAME,
    P_QUEUE,
    P_VERSION,
    P_ATTEMPT,
    P_FAILURES,
    P_CRASHES,
    P_RELEASES,
    P_DELIVERIES,
    P_LOSSES,
    P_FENCE,
    P_PAYLOAD,
    P_CONTEXT,
    P_ENQUEUED_AT
};
static const jobq_job_number numbers[] = {JOBQ_JOB_VERSION, JOBQ_JOB_ATTEMPT,  JOBQ_JOB_FAILURES,
                                          JOBQ_JOB_CRASHES, JOBQ_JOB_RELEASES, JOBQ_JOB_DELIVERIES,
                                          JOBQ_JOB_LOSSES,  JOBQ_JOB_FENCE};

/* ---- the object ------------------------------------------------------------------------------ */

static zend_object *create_job(zend_class_entry *ce)
{
    php_jobq_job *job = zend_object_alloc(sizeof(*job), ce);
    zend_object_std_init(&job->std, ce);
    object_properties_init(&job->std, ce);
    job->std.handlers = &handlers;
    return &job->std;
}

void php_jobq_job_detach(php_jobq_job *job)
{
    if (job->kind == PHP_JOBQ_RESERVED) {
        jobq_job_free(job->job);
    }
    job->job = NULL;
}

static void free_job(zend_object *object)
{
    php_jobq_job *job = php_jobq_job_from(object);
    php_jobq_job_detach(job);
    zval_ptr_dtor(&job->defers);
    zval_ptr_dtor(&job->queue);
    zend_object_std_dtor(object);
}

static HashTable *get_gc(zend_object *object, zval **table, int *n)
{
    php_jobq_job *job = php_jobq_job_from(object);
    zend_get_gc_buffer *buffer = zend_get_gc_buffer_create();
    zend_get_gc_buffer_add_zval(buffer, &job->defers);
    zend_get_gc_buffer_add_zval(buffer, &job->queue);
    for (int i = 0; i < object->ce->default_properties_count; i++) {
        zend_get_gc_buffer_add_zval(buffer, OBJ_PROP_NUM(object, i));
    }
    zend_get_gc_buffer_use(buffer, table, n);
    return NULL;
}

static void init_texts(zend_object *object, const jobq_job *job)
{
    zval value;
    size_t n;
    ZVAL_STRING(&value, jobq_job_id(job));
    php_jobq_init_property(object, P_ID, &value);
    const char *text = jobq_job_name(job, &n);
    ZVAL_STRINGL(&value, text, n);
    php_jobq_init_property(object, P_NAME, &value);
    text = jobq_job_queue(job, &n);
    ZVAL_STRINGL(&value, text, n);
    php_jobq_init_property(object, P_QUEUE, &value);
}

static bool context_pair(const void *job, size_t i, php_jobq_pair *pair)
{
    return jobq_job_context(job, i, &pair->key, &pair->key_n, &pair->value, &pair->value_n);
}

void php_jobq_job_make(zval *out, jobq_job *job, int kind, zval *payload)
{
    zval value;
    object_init_ex(out, php_jobq_ce_job);
    zend_object *object = Z_OBJ_P(out);
    php_jobq_job *self = php_jobq_job_from(object);
    self->job = job;
    self->kind = kind;
    self->delay_ms = -1;
    init_texts(object, job);
    for (uint32_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        ZVAL_LONG(&value, (zend_long)jobq_job_get(job, numbers[i]));
        php_jobq_init_property(object, P_VERSION + i, &value);
    }
    php_jobq_init_property(object, P_PAYLOAD, payload);
    php_jobq_context(&value, context_pair, job);
    php_jobq_init_property(object, P_CONTEXT, &value);
    int64_t enqueued = jobq_job_get(job, JOBQ_JOB_ENQUEUED_AT_MS);
    php_jobq_time_from_ms(&value, enqueued ? enqueued : 1);
    php_jobq_init_property(object, P_ENQUEUED_AT, &value);
}

ZEND_METHOD(JobQueue_Job, __construct)
{
    ZEND_PARSE_PARAMETERS_NONE();
}

/* ---- ending it ------------------------------------------------------------------------------- */

static php_jobq_job *this_job(zval *self)
{
    php_jobq_job *job = php_jobq_job_from(Z_OBJ_P(self));
    if (!job->job) {
        php_jobq_throw_logic("the job has ended");
        return NULL;
    }
    return job;
}

/* The first of release, fail, delete (done, retry) wins. */
static php_jobq_job *undecided(zval *self, const char *method)
{
    php_jobq_job *job = this_job(self);
    if (!job) {
        return NULL;
    }
    if (job->kind == PHP_JOBQ_EVENT) {
        php_jobq_throw_logic("%s(): a job of an event cannot be settled", method);
        return NULL;
    }
    if (job->lost) {
        php_jobq_throw_lease_lost();
        return NULL;
    }
    if (job->decided) {
        php_jobq_throw_logic("%s(): the job's end is decided already (%s)", method,
                             jobq_ending_word(job->decision));
        return NULL;
    }
    return job;
}

static void decide(php_jobq_job *job, jobq_ending ending, int64_t delay_ms)
{
    if (job->kind == PHP_JOBQ_RESERVED && jobq_job_settle(job->job, ending, delay_ms) < 0) {
        job->lost = jobq_error_code(jobq_error_last()) == JOBQ_ELEASE;
        php_jobq_throw_last();
        return;
    }
    job->decided = true;
    job->decision = ending;
    job->delay_ms = delay_ms;
}

ZEND_METHOD(JobQueue_Job, release)
{
    double delay = 0;
    int64_t ms;
    ZEND_PARSE_PARAMETERS_START(0, 1)
        Z_PARAM_OPTIONAL
        Z_PARAM_DOUBLE(delay)
    ZEND_PARSE_PARAMETERS_END();
    if (php_jobq_seconds(delay, "delay", &ms) == FAILURE) {
        RETURN_THROWS();
    }
    php_jobq_job *job = undecided(ZEND_THIS, "release");
    if (job) {
        decide(job, JOBQ_ENDED_RELEASED, ms);
    }
}

ZEND_METHOD(JobQueue_Job, fail)
{
    zend_object *exception = NULL;
    zend_string *reason = NULL;
    ZEND_PARSE_PARAMETERS_START(1, 1)
        Z_PARAM_OBJ_OF_CLASS_OR_STR(exception, zend_ce_throwable, reason)
    ZEND_PARSE_PARAMETERS_END();
    php_jobq_job *job = undecided(ZEND_THIS, "fail");
    if (!job) {
        RETURN_THROWS();
    }
    if (exception) {
        php_jobq_fault_set(job->job, exception);
    } else {
        php_jobq_fault_text(job->job, NULL, ZSTR_VAL(reason), ZSTR_LEN(reason));
    }
    decide(job, JOBQ_ENDED_FAILED_BY_HANDLER, -1);
}

ZEND_METHOD(JobQueue_Job, delete)
{
    ZEND_PARSE_PARAMETERS_NONE();
    php_jobq_job *job = undecided(ZEND_THIS, "delete");
    if (job) {
        decide(job, JOBQ_ENDED_DONE, -1);
    }
}

static php_jobq_job *reserved_only(zval *self, const char *method)
{
    php_jobq_job *job = undecided(self, method);
    if (job && job->kind != PHP_JOBQ_RESERVED) {
        php_jobq_throw_logic("%s() is for jobs of Queue::reserve(); a handler returns, throws, or "
                             "calls release(), fail() or delete()",
                             method);
        return NULL;
    }
    return job;
}

ZEND_METHOD(JobQueue_Job, done)
{
    zval *result = NULL;
    ZEND_PARSE_PARAMETERS_START(0, 1)
        Z_PARAM_OPTIONAL
        Z_PARAM_ZVAL(result)
    ZEND_PARSE_PARAMETERS_END();
    php_jobq_job *job = reserved_only(ZEND_THIS, "done");
    if (job && (!result || php_jobq_result_set(job->job, result) == SUCCESS)) {
        decide(job, JOBQ_ENDED_DONE, -1);
    }
}

ZEND_METHOD(JobQueue_Job, retry)
{
    double delay = 0;
    bool no_delay = true;
    zval *error = NULL;
    int64_t ms = -1;
    ZEND_PARSE_PARAMETERS_START(0, 2)
        Z_PARAM_OPTIONAL
        Z_PARAM_DOUBLE_OR_NULL(delay, no_delay)
        Z_PARAM_OBJECT_OF_CLASS_OR_NULL(error, zend_ce_throwable)
    ZEND_PARSE_PARAMETERS_END();
    if (!no_delay && php_jobq_seconds(delay, "delay", &ms) == FAILURE) {
        RETURN_THROWS();
    }
    php_jobq_job *job = reserved_only(ZEND_THIS, "retry");
    if (!job) {
        RETURN_THROWS();
    }
    if (error) {
        php_jobq_fault_set(job->job, Z_OBJ_P(error));
    }
    decide(job, JOBQ_ENDED_FAILED, no_delay ? -1 : ms);
}

/* ---- while it runs --------------------------------------------------------------------------- */

ZEND_METHOD(JobQueue_Job, defer)
{
    zend_fcall_info fci;
    zend_fcall_info_cache fcc;
    ZEND_PARSE_PARAMETERS_START(1, 1)
        Z_PARAM_FUNC(fci, fcc)
    ZEND_PARSE_PARAMETERS_END();
    php_jobq_job *job = this_job(ZEND_THIS);
    if (!job) {
        RETURN_THROWS();
    }
    if (job->kind != PHP_JOBQ_HANDLER) {
        php_jobq_throw_logic("defer() is for handlers");
        RETURN_THROWS();
    }
    if (Z_TYPE(job->defers) != IS_ARRAY) {
        array_init(&job->defers);
    }
    Z_TRY_ADDREF(fci.function_name);
    add_next_index_zval(&job->defers, &fci.function_name);
}

ZEND_METHOD(JobQueue_Job, extend)
{
    ZEND_PARSE_PARAMETERS_NONE();
    php_jobq_job *job = this_job(ZEND_THIS);
    if (job && jobq_job_extend(job->job) < 0) {
        php_jobq_throw_last();
    }
}

ZEND_METHOD(JobQueue_Job, isCancelled)
{
    ZEND_PARSE_PARAMETERS_NONE();
    php_jobq_job *job = this_job(ZEND_THIS);
    RETURN_BOOL(job && jobq_job_is_cancelled(job->job));
}

ZEND_METHOD(JobQueue_Job, isStopping)
{
    ZEND_PARSE_PARAMETERS_NONE();
    php_jobq_job *job = this_job(ZEND_THIS);
    RETURN_BOOL(job && jobq_job_is_stopping(job->job));
}

ZEND_METHOD(JobQueue_Job, checkpoint)
{
    ZEND_PARSE_PARAMETERS_NONE();
    php_jobq_job *job = this_job(ZEND_THIS);
    if (!job) {
        RETURN_THROWS();
    }
    php_jobq_attempt *attempt = JQG(attempt) && JQG(attempt)->job == job->job ? JQG(attempt) : NULL;
    const bool cancelled = jobq_job_is_cancelled(job->job);
    if (jobq_job_is_lost(job->job)) {
        php_jobq_throw_lease_lost();
        return;
    }
    if (attempt) {
        php_jobq_attempt_interrupt(attempt);
    }
    if (cancelled && !EG(exception)) {
        if (attempt) {
            attempt->interrupt = JOBQ_INTERRUPT_STOP;
        }
        php_jobq_throw_interrupt(JOBQ_INTERRUPT_STOP, job->job);
    }
}

ZEND_METHOD(JobQueue_Job, age)
{
    ZEND_PARSE_PARAMETERS_NONE();
    php_jobq_job *job = this_job(ZEND_THIS);
    RETURN_DOUBLE(job ? (double)jobq_job_get(job->job, JOBQ_JOB_AGE_MS) / 1000.0 : 0);
}

ZEND_METHOD(JobQueue_Job, remaining)
{
    ZEND_PARSE_PARAMETERS_NONE();
    php_jobq_job *job = this_job(ZEND_THIS);
    int64_t ms = job ? jobq_job_get(job->job, JOBQ_JOB_REMAINING_MS) : -1;
    if (ms >= 0) {
        RETURN_DOUBLE((double)ms / 1000.0);
    }
}

/* ---- its work in the store (rules N7, O1, O2) ------------------------------------------------ */

/* For what needs the hand-out: a job that is decided or of an event cannot. */
static php_jobq_job *held(zval *self, const char *method)
{
    php_jobq_job *job = this_job(self);
    if (job && job->kind == PHP_JOBQ_EVENT) {
        php_jobq_throw_logic("%s() is for handlers and Queue::reserve()", method);
        return NULL;
    }
    return job;
}

ZEND_METHOD(JobQueue_Job, fingerprint)
{
    ZEND_PARSE_PARAMETERS_NONE();
    php_jobq_job *job = this_job(ZEND_THIS);
    const char *text = job ? jobq_job_fingerprint(job->job) : NULL;
    if (job && !text) {
        php_jobq_throw_last();
    }
    if (!text) {
        RETURN_THROWS();
    }
    RETURN_STRING(text);
}

ZEND_METHOD(JobQueue_Job, progress)
{
    double percent;
    zend_string *note = NULL;
    ZEND_PARSE_PARAMETERS_START(1, 2)
        Z_PARAM_DOUBLE(percent)
        Z_PARAM_OPTIONAL
        Z_PARAM_STR_OR_NULL(note)
    ZEND_PARSE_PARAMETERS_END();
    php_jobq_job *job = held(ZEND_THIS, "progress");
    if (job && jobq_job_progress(job->job, percent, note ? ZSTR_VAL(note) : NULL,
                                 note ? ZSTR_LEN(note) : 0) < 0) {
        php_jobq_throw_last();
    }
}

ZEND_METHOD(JobQueue_Job, effect)
{
    zval *array;
    php_jobq_statement statement;
    jobq_param value = {0};
    ZEND_PARSE_PARAMETERS_START(1, 1)
        Z_PARAM_ARRAY(array)
    ZEND_PARSE_PARAMETERS_END();
    php_jobq_job *job = held(ZEND_THIS, "effect");
    if (!job || php_jobq_statement_read("effect", false, array, &statement) == FAILURE) {
        RETURN_THROWS();
    }
    int rc = jobq_job_effect(job->job, &statement.statement, &value);
    php_jobq_statement_free(&statement);
    if (rc < 0) {
        php_jobq_throw_last();
        RETURN_THROWS();
    }
    php_jobq_param_make(return_value, &value);
}

ZEND_METHOD(JobQueue_Job, doneStatement)
{
    zend_string *word = NULL;
    zval *result = NULL;
    int placeholders = JOBQ_PLACEHOLDER_QUESTION;
    const jobq_statement *statement = NULL;
    ZEND_PARSE_PARAMETERS_START(0, 2)
        Z_PARAM_OPTIONAL
        Z_PARAM_STR(word)
        Z_PARAM_ZVAL_OR_NULL(result)
    ZEND_PARSE_PARAMETERS_END();
    php_jobq_job *job = held(ZEND_THIS, "doneStatement");
    if (!job || (word && php_jobq_placeholders(word, &placeholders) == FAILURE)) {
        RETURN_THROWS();
    }
    if (result && php_jobq_result_set(job->job, result) == FAILURE) {
        RETURN_THROWS();
    }
    if (jobq_job_done_statement(job->job, placeholders, &statement) < 0) {
        php_jobq_throw_last();
        RETURN_THROWS();
    }
    php_jobq_statement_make(return_value, statement);
}

void php_jobq_register_job(void)
{
    php_jobq_ce_job = register_class_JobQueue_Job();
    php_jobq_ce_job->create_object = create_job;
    memcpy(&handlers, &std_object_handlers, sizeof(handlers));
    handlers.offset = offsetof(php_jobq_job, std);
    handlers.free_obj = free_job;
    handlers.get_gc = get_gc;
    handlers.clone_obj = NULL;
}
