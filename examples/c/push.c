/* SPDX-License-Identifier: MIT
 *
 * Pushes one job from C: push DSN NUMBER. Build: cc push.c $(pkg-config --cflags --libs
 * libjobqueue).
 */
#include <jobqueue/jobqueue.h>
#include <stdio.h>
#include <stdlib.h>

/* {"invoice": NUMBER}, up to five tries; errors stick in the writer and come out at the push. */
static int fill(jobq_message *message, int64_t number)
{
    jobq_writer *w = jobq_message_payload(message);
    int rc = jobq_message_set_name(message, "invoice.send", 12);

    if (rc < 0)
        return rc;
    jobq_writer_map(w, 1);
    jobq_writer_str(w, "invoice", 7);
    jobq_writer_int(w, number);
    return jobq_conf_set(jobq_message_options(message), "tries", "5", 1);
}

int main(int argc, char **argv)
{
    jobq_queue *queue = NULL;
    jobq_message *message = jobq_message_new();
    int rc = -1;

    if (argc != 3) {
        fprintf(stderr, "usage: push DSN NUMBER\n");
        return 2;
    }
    if (message && (rc = jobq_queue_new(argv[1], NULL, &queue)) >= 0 &&
        (rc = fill(message, strtoll(argv[2], NULL, 10))) >= 0)
        rc = jobq_queue_push(queue, message);
    if (rc < 0)
        fprintf(stderr, "push: %s\n", jobq_error_message(jobq_error_last()));
    else
        printf("%s\n", jobq_message_id(message));
    jobq_message_free(message);
    jobq_queue_free(queue);
    return rc < 0;
}
