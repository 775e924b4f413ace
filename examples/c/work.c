/* SPDX-License-Identifier: MIT
 *
 * A worker in C with two processes: work DSN. Ends when the queue is empty.
 */
#include <jobqueue/jobqueue.h>
#include <stdio.h>
#include <string.h>

/* The number behind the key "invoice" of a flat map, -1 when there is none. */
static int64_t invoice_of(jobq_job *job)
{
    jobq_reader *reader = jobq_reader_new();
    jobq_token token;
    int64_t number = -1;
    bool wanted = false;
    int format;
    size_t n;
    const void *body = jobq_job_body(job, &n, &format);

    if (!reader)
        return -1;
    jobq_reader_open(reader, format, body, n);
    while (jobq_reader_next(reader, &token) > 0) {
        if (wanted && token.kind == JOBQ_INT)
            number = token.as.integer;
        wanted = token.key && token.kind == JOBQ_STR && token.as.text.n == 7 &&
                 !memcmp(token.as.text.p, "invoice", 7);
    }
    jobq_reader_free(reader);
    return number;
}

static int send_invoice(jobq_job *job, void *payload)
{
    int64_t number = invoice_of(job);

    (void)payload;
    if (number < 0) {
        jobq_job_set_error(job, NULL, 0, "the payload names no invoice", 28, NULL, 0, NULL, 0);
        return JOBQ_ENDED_FAILED_BY_HANDLER;
    }
    printf("sending invoice %lld\n", (long long)number);
    fflush(stdout);
    return JOBQ_ENDED_DONE;
}

int main(int argc, char **argv)
{
    jobq_conf *conf = jobq_conf_new(JOBQ_SCOPE_WORKER, JOBQ_STYLE_SNAKE);
    jobq_queue *queue = NULL;
    jobq_worker *worker = NULL;
    int code = -1;

    if (argc != 2) {
        fprintf(stderr, "usage: work DSN\n");
        return 2;
    }
    if (conf && jobq_conf_set_int(conf, "processes", 2) >= 0 &&
        jobq_conf_set_bool(conf, "stop_when_empty", true) >= 0 &&
        jobq_queue_new(argv[1], NULL, &queue) >= 0 && jobq_worker_new(queue, conf, &worker) >= 0 &&
        jobq_worker_handle(worker, "invoice.send", 12, 1, NULL) >= 0)
        code = jobq_worker_run(worker, NULL, 0, send_invoice, NULL);
    if (code < 0)
        fprintf(stderr, "work: %s\n", jobq_error_message(jobq_error_last()));
    jobq_worker_free(worker);
    jobq_queue_free(queue);
    jobq_conf_free(conf);
    return code < 0 ? 2 : code;
}
