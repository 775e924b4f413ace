/* SPDX-License-Identifier: MIT
 *
 * JobInfo: a job as it stands in the store, copied out once. The class is Python's
 * (jobqueue/records.py); its fields are named here.
 */
#include "core.h"

static const struct {
    const char *field;
    jobq_info_text_field which;
    bool always;
} texts[] = {
    {"id", JOBQ_INFO_ID, true},          {"name", JOBQ_INFO_NAME, true},
    {"queue", JOBQ_INFO_QUEUE, true},    {"reserved_by", JOBQ_INFO_RESERVED_BY, false},
    {"reason", JOBQ_INFO_REASON, false},
};
static const struct {
    const char *field;
    jobq_info_number_field which;
    bool time;
} numbers[] = {
    {"version", JOBQ_INFO_VERSION, false},
    {"attempt", JOBQ_INFO_ATTEMPT, false},
    {"failures", JOBQ_INFO_FAILURES, false},
    {"crashes", JOBQ_INFO_CRASHES, false},
    {"releases", JOBQ_INFO_RELEASES, false},
    {"deliveries", JOBQ_INFO_DELIVERIES, false},
    {"losses", JOBQ_INFO_LOSSES, false},
    {"priority", JOBQ_INFO_PRIORITY, false},
    {"enqueued_at", JOBQ_INFO_ENQUEUED_AT_MS, true},
    {"available_at", JOBQ_INFO_AVAILABLE_AT_MS, true},
    {"reserved_until", JOBQ_INFO_RESERVED_UNTIL_MS, true},
    {"died_at", JOBQ_INFO_DIED_AT_MS, true},
    {"kept_until", JOBQ_INFO_KEPT_UNTIL_MS, true},
};

/* ---- small things that several files make ---------------------------------------------------- */

PyObject *core_text_or_none(const char *text)
{
    if (!text) {
        Py_RETURN_NONE;
    }
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

bool core_add(PyObject *dict, const char *key, PyObject *value)
{
    const bool done = dict && value && PyDict_SetItemString(dict, key, value) == 0;
    Py_XDECREF(value);
    return done;
}

bool core_add_text(PyObject *dict, const char *key, const char *text)
{
    return core_add(dict, key, core_text_or_none(text));
}

PyObject *core_counters(core_counter next, const void *of)
{
    PyObject *dict = PyDict_New();
    for (size_t i = 0; dict; i++) {
        const char *name = NULL;
        const int64_t value = next(of, i, &name);
        if (!name) {
            break;
        }
        if (!core_add(dict, name, PyLong_FromLongLong(value))) {
            Py_CLEAR(dict);
        }
    }
    return dict;
}

PyObject *core_state_make(core_state *state, jobq_state value)
{
    return PyObject_CallFunction(core_get(state, CORE_STATE), "s", jobq_state_word(value));
}

/* ---- the parts ------------------------------------------------------------------------------- */

static bool add_texts(PyObject *fields, const jobq_info *info)
{
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        size_t n = 0;
        const char *text = jobq_info_text(info, texts[i].which, &n);
        PyObject *value = text ? PyUnicode_DecodeUTF8(text, (Py_ssize_t)n, "replace")
                               : core_text_or_none(texts[i].always ? "" : NULL);
        if (!core_add(fields, texts[i].field, value)) {
            return false;
        }
    }
    return true;
}

static bool add_numbers(core_state *state, PyObject *fields, const jobq_info *info)
{
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        const int64_t number = jobq_info_number(info, numbers[i].which);
        PyObject *value =
            numbers[i].time ? core_time_from_ms(state, number) : PyLong_FromLongLong(number);
        if (value == Py_None && numbers[i].which == JOBQ_INFO_ENQUEUED_AT_MS) {
            Py_DECREF(value);
            value = core_time_make(state, 0, 0);
        }
        if (!core_add(fields, numbers[i].field, value)) {
            return false;
        }
    }
    return true;
}

/* The value; NULL: raised, or *error_out says why it cannot be read. */
static PyObject *decode(core_state *state, int format, const void *body, size_t n,
                        PyObject **error_out)
{
    bool problem = false;
    PyObject *value = core_decode(state, format, body, n, &problem);
    if (!value && problem) {
        PyObject *exception = core_exception_take();
        *error_out = exception ? PyObject_Str(exception) : NULL;
        Py_XDECREF(exception);
    }
    return value;
}

/* One of them is None. Steals both; both NULL: raised. */
static bool add_either(PyObject *fields, const char *key, PyObject *value, const char *error_key,
                       PyObject *error)
{
    if (!value && !error) {
        return false;
    }
    const bool done = core_add(fields, key, value ? value : Py_NewRef(Py_None));
    return core_add(fields, error_key, error ? error : Py_NewRef(Py_None)) && done;
}

/* Listing never fails on a bad body: the payload is None and the error says why. */
static bool add_payload(core_state *state, PyObject *fields, const jobq_info *info)
{
    size_t n;
    int format;
    const void *body = jobq_info_body(info, &n, &format);
    PyObject *payload = NULL, *error = NULL;
    if (jobq_info_check(info) < 0) {
        const char *text = jobq_error_message(jobq_error_last());
        error = core_text_or_none(*text ? text : "the payload cannot be read");
    } else {
        payload = decode(state, format, body, n, &error);
    }
    return add_either(fields, "payload", payload, "payload_error", error);
}

static bool add_result(core_state *state, PyObject *fields, const jobq_info *info)
{
    size_t n;
    int format;
    const char *refusal = NULL;
    const void *body = jobq_info_result(info, &n, &format, &refusal);
    PyObject *error = refusal ? core_text_or_none(refusal) : NULL;
    PyObject *result =
        body ? decode(state, format, body, n, &error) : (refusal ? NULL : Py_NewRef(Py_None));
    return add_either(fields, "result", result, "result_error", error);
}

static bool add_progress(PyObject *fields, const jobq_info *info)
{
    double percent;
    const char *note = NULL;
    if (!jobq_info_progress(info, &percent, &note)) {
        return core_add_text(fields, "progress", NULL);
    }
    PyObject *progress = PyDict_New();
    if (!progress || !core_add(progress, "percent", PyFloat_FromDouble(percent)) ||
        !core_add_text(progress, "note", note)) {
        Py_CLEAR(progress);
    }
    return core_add(fields, "progress", progress);
}

PyObject *core_context(core_pair next, const void *of)
{
    const char *key, *value;
    size_t key_n, value_n;
    PyObject *context = PyDict_New();
    for (size_t i = 0; context && next(of, i, &key, &key_n, &value, &value_n); i++) {
        PyObject *k = PyUnicode_DecodeUTF8(key, (Py_ssize_t)key_n, "replace");
        PyObject *v = PyUnicode_DecodeUTF8(value, (Py_ssize_t)value_n, "replace");
        if (!k || !v || PyDict_SetItem(context, k, v) < 0) {
            Py_CLEAR(context);
        }
        Py_XDECREF(k);
        Py_XDECREF(v);
    }
    return context;
}

static bool pair(const void *info, size_t i, const char **key, size_t *key_n, const char **value,
                 size_t *value_n)
{
    return jobq_info_context(info, i, key, key_n, value, value_n);
}

/* "5" -> 5, "0.5" -> 0.5, "true" -> True; a unique key stays a text. */
static PyObject *option_value(const char *name, const char *value)
{
    char *end;
    if (strcmp(name, "unique") != 0 &&
        (strcmp(value, "true") == 0 || strcmp(value, "false") == 0)) {
        return PyBool_FromLong(*value == 't');
    }
    if (strcmp(name, "unique") != 0 && *value) {
        const long long whole = strtoll(value, &end, 10);
        if (!*end) {
            return PyLong_FromLongLong(whole);
        }
        const double number = PyOS_string_to_double(value, NULL, NULL);
        if (!PyErr_Occurred()) {
            return PyFloat_FromDouble(number);
        }
        PyErr_Clear();
    }
    return core_text_or_none(value);
}

static bool add_options(PyObject *fields, const jobq_info *info)
{
    const char *name, *value;
    PyObject *options = PyDict_New();
    for (size_t i = 0; options && jobq_info_option(info, i, &name, &value); i++) {
        if (!core_add(options, name, option_value(name, value))) {
            Py_CLEAR(options);
        }
    }
    return core_add(fields, "options", options);
}

static bool add_last_error(PyObject *fields, const jobq_info *info)
{
    const char *class_name, *message, *where, *trace;
    if (!jobq_info_error(info, &class_name, &message, &where, &trace)) {
        return core_add_text(fields, "last_error", NULL);
    }
    PyObject *error = PyDict_New();
    if (!error || !core_add_text(error, "class", class_name) ||
        !core_add_text(error, "message", message) || !core_add_text(error, "where", where) ||
        !core_add_text(error, "trace", trace)) {
        Py_CLEAR(error);
    }
    return core_add(fields, "last_error", error);
}

static bool add_history(core_state *state, PyObject *fields, const jobq_info *info)
{
    int64_t started, ended;
    const char *worker, *outcome, *class_name, *message;
    PyObject *history = PyList_New(0);
    for (size_t i = 0; history && jobq_info_attempt(info, i, &started, &ended, &worker, &outcome,
                                                    &class_name, &message);
         i++) {
        PyObject *one = PyDict_New();
        if (!one || !core_add(one, "started", core_time_from_ms(state, started)) ||
            !core_add(one, "ended", core_time_from_ms(state, ended)) ||
            !core_add_text(one, "worker", worker) || !core_add_text(one, "outcome", outcome) ||
            !core_add_text(one, "class", class_name) || !core_add_text(one, "message", message) ||
            (jobq_info_attempt_shared(info, i) && !core_add(one, "shared", PyBool_FromLong(1))) ||
            PyList_Append(history, one) < 0) {
            Py_CLEAR(history);
        }
        Py_XDECREF(one);
    }
    return core_add(fields, "history", history);
}

PyObject *core_info_make(core_state *state, const jobq_info *info)
{
    PyObject *fields = PyDict_New(), *none = PyTuple_New(0), *made = NULL;
    const jobq_state value = (jobq_state)jobq_info_number(info, JOBQ_INFO_STATE);
    if (fields && none && core_add(fields, "state", core_state_make(state, value)) &&
        add_texts(fields, info) && add_numbers(state, fields, info) &&
        add_payload(state, fields, info) && core_add(fields, "context", core_context(pair, info)) &&
        add_options(fields, info) && add_last_error(fields, info) &&
        add_history(state, fields, info) && add_progress(fields, info) &&
        add_result(state, fields, info)) {
        made = PyObject_Call(core_get(state, CORE_JOB_INFO), none, fields);
    }
    Py_XDECREF(fields);
    Py_XDECREF(none);
    return made;
}
