/* SPDX-License-Identifier: MIT
 *
 * Options from anywhere: two bytes choose scope and style, the rest is lines "name=value". Every
 * value is taken or refused with a reason.
 */
#include <jobqueue/conf.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int condition)
{
    if (!condition)
        abort();
}

static void set_line(jobq_conf *conf, const char *line, size_t n)
{
    const char *equals = memchr(line, '=', n);
    size_t length = equals ? (size_t)(equals - line) : n;
    const char *value = equals ? equals + 1 : line + n;
    char name[64];
    int rc;

    if (length >= sizeof(name))
        length = sizeof(name) - 1;
    memcpy(name, line, length);
    name[length] = '\0';
    rc = jobq_conf_set(conf, name, value, (size_t)(line + n - value));
    must(rc >= 0 || jobq_error_code(jobq_error_last()) == rc);
    rc = jobq_conf_add(conf, name, value, (size_t)(line + n - value));
    must(rc >= 0 || jobq_error_code(jobq_error_last()) == rc);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    jobq_conf *conf, *over;
    const char *p, *end;
    int scope, style;

    if (size < 2)
        return 0;
    scope = 1 << (data[0] & 3);
    style = data[1] % 3;
    conf = jobq_conf_new(scope, style);
    over = jobq_conf_new(scope, style);
    must(conf && over);
    p = (const char *)data + 2;
    end = (const char *)data + size;
    for (int line = 0; p < end; line++) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));

        stop = stop ? stop : end;
        set_line(line & 1 ? over : conf, p, (size_t)(stop - p));
        p = stop < end ? stop + 1 : end;
    }
    must(jobq_conf_merge(conf, over) >= 0);
    jobq_conf_reset(conf);
    jobq_conf_free(conf);
    jobq_conf_free(over);
    return 0;
}
