/* SPDX-License-Identifier: MIT
 *
 * What the console writes about stored texts never steers a terminal (rule G4): JSON documents and
 * tables.
 */
#include "harness/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "console/console.h"

typedef struct {
    const char *text;
    size_t n;
    const char *wanted;
} text_case;
#define CASE(text, wanted)             \
    {                                  \
        text, sizeof(text) - 1, wanted \
    }

static const text_case strings[] = {
    CASE("plain", "\"plain\""),
    CASE("a\"b\\c", "\"a\\\"b\\\\c\""),
    CASE("a\0b", "\"a\\u0000b\""),
    CASE("\033[31m\n\t\x7f", "\"\\u001b[31m\\n\\u0009\\u007f\""),
    CASE("\xc2\x9b"
         "31m",
         "\"\\u009b31m\""),
    CASE("\xc3\xa9\xf0\x9f\x98\x80", "\"\xc3\xa9\xf0\x9f\x98\x80\""),
    CASE("\xff\xc3", "\"\\ufffd\\ufffd\""),
};

static const text_case raws[] = {
    CASE("{\"a\":[1,\"x\"]}", "{\"a\":[1,\"x\"]}"),
    CASE("[1,\n2]", "[1, 2]"),
    CASE("\"\x7f\xc2\x9b\xc3\xa9\"", "\"\\u007f\\u009b\xc3\xa9\""),
};

static void check(const text_case *c, bool raw)
{
    char *out = NULL;
    size_t n;
    FILE *f = open_memstream(&out, &n);
    jobq__json j;

    assert_non_null(f);
    jobq__json_begin(&j, f);
    if (raw)
        jobq__json_raw(&j, NULL, c->text, c->n);
    else
        jobq__json_text(&j, NULL, c->text, c->n);
    fclose(f);
    assert_string_equal(out, c->wanted);
    free(out);
}

static void texts_are_escaped(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++)
        check(&strings[i], false);
}

static void ready_json_is_cleaned(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(raws) / sizeof(raws[0]); i++)
        check(&raws[i], true);
}

static void documents_nest(void **state)
{
    char *out = NULL;
    size_t n;
    FILE *f = open_memstream(&out, &n);
    jobq__json j;

    (void)state;
    jobq__json_begin(&j, f);
    jobq__json_open(&j, NULL, '{');
    jobq__json_int(&j, "a", -5);
    jobq__json_open(&j, "l", '[');
    jobq__json_close(&j, ']');
    jobq__json_open(&j, "m", '[');
    jobq__json_real(&j, NULL, 0.25);
    jobq__json_null(&j, NULL);
    jobq__json_bool(&j, NULL, true);
    jobq__json_close(&j, ']');
    jobq__json_time(&j, "t", 1796032801001);
    jobq__json_time(&j, "never", 0);
    jobq__json_close(&j, '}');
    fclose(f);
    assert_string_equal(out, "{\"a\":-5,\"l\":[],\"m\":[0.25,null,true],\"t\":\"2026-11-30T10:00:"
                             "01.001Z\",\"never\":null}\n");
    free(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_escaped),
        cmocka_unit_test(ready_json_is_cleaned),
        cmocka_unit_test(documents_nest),
    };

    return cmocka_run_group_tests_name("console: JSON (rule G4)", tests, NULL, NULL);
}
