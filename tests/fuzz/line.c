/* SPDX-License-Identifier: MIT
 *
 * Lines of "push -" from anywhere, guards included: taken or refused with a reason, and what was
 * taken is a job that could be stored.
 */
#include "console/guard.h"
#include "console/push_line.h"
#include "core/message.h"
#include "driver/driver.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int condition)
{
    if (!condition)
        abort();
}

/* Every param's bytes are read, so that a sanitizer sees one that points nowhere. */
static void look_at(const jobq_statement *s)
{
    volatile unsigned sum = 0;

    must(s->param_count <= 100);
    for (size_t i = 0; i < s->param_count; i++)
        for (size_t k = 0; s->params[i].type >= JOBQ_PARAM_TEXT && k < s->params[i].bytes.n; k++)
            sum += ((const unsigned char *)s->params[i].bytes.p)[k];
}

static void check_taken(jobq_message *m)
{
    jobq_push item = {0};
    int rc = jobq__message_prepare(m, "default", 1 << 20, &item);

    must(rc == 0 || jobq_error_code(jobq_error_last()) == rc);
    if (rc < 0)
        return;
    must(item.id.n > 0 && item.name.n > 0 && item.name.n <= 255 && item.queue.n > 0);
    must(item.priority <= 9 && item.version >= 1);
    if (item.guard)
        look_at(item.guard);
}

/* Words of --guard-param: cut at line ends. */
static void try_words(char *text, jobq_message *m)
{
    const char *words[8];
    jobq__arena arena = {0};
    size_t n = 0;

    for (char *word = strtok(text, "\n"); word && n < 8; word = strtok(NULL, "\n"))
        words[n++] = word;
    if (n > 0 && jobq__guard_of_words(words[0], words + 1, n - 1, &arena, m) == 0)
        must(jobq_message_set_name(m, "n", 1) == 0);
    jobq__arena_free(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    jobq_message *m = jobq_message_new();
    jobq_conf *base = jobq_conf_new(JOBQ_SCOPE_PUSH, JOBQ_STYLE_SNAKE);
    char *text = malloc(size + 1);
    int rc;

    must(m && base && text);
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    rc = jobq__push_line_read((const char *)data, size, base, m);
    must(rc == 0 || jobq_error_code(jobq_error_last()) == rc);
    if (rc == 0)
        check_taken(m);
    jobq_message_reset(m);
    try_words(text, m);
    free(text);
    jobq_conf_free(base);
    jobq_message_free(m);
    return 0;
}
