/* SPDX-License-Identifier: MIT
 *
 * DSNs from anywhere: parsed or refused with a reason, and what is shown never holds the password.
 */
#include "driver/driver.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int condition)
{
    if (!condition)
        abort();
}

static int take_option(void *payload, const char *name, const char *value, size_t n)
{
    size_t *seen = payload;

    *seen += strlen(name) + n + (n ? (unsigned char)value[n - 1] : 0u);
    return 0;
}

static size_t occurrences(const char *text, const char *word)
{
    size_t n = 0;

    for (text = strstr(text, word); text; text = strstr(text + 1, word))
        n++;
    return n;
}

/* The password's own place is gone from what is shown; the same letters may stand elsewhere. */
static void check_hidden(const char *dsn, const char *shown, jobq_slice password)
{
    char *word = malloc(password.n + 1);

    must(word != NULL);
    if (password.n)
        memcpy(word, password.p, password.n);
    word[password.n] = '\0';
    if (password.n && !strchr(word, '*') && !strchr(dsn, '%')) /* as it stands in the text */
        must(occurrences(shown, word) < occurrences(dsn, word));
    free(word);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *dsn = malloc(size + 1);
    jobq__arena arena = {0};
    jobq_driver_config config;
    size_t seen = 0;
    const char *shown;
    int rc;

    must(dsn != NULL);
    if (size)
        memcpy(dsn, data, size);
    dsn[size] = '\0';
    memset(&config, 0, sizeof(config));
    rc = jobq__dsn_parse(dsn, &arena, &config, take_option, &seen);
    must(rc == 0 || jobq_error_code(jobq_error_last()) == rc);
    if (rc == 0)
        must(config.scheme != NULL && config.port >= 0 && config.port <= 65535);
    shown = jobq__dsn_mask(dsn, &arena);
    must(shown != NULL && strlen(shown) <= 2 * strlen(dsn) + 8);
    if (rc == 0)
        check_hidden(dsn, shown, config.password);
    jobq__arena_free(&arena);
    free(dsn);
    return 0;
}
