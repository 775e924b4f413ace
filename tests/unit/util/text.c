/* SPDX-License-Identifier: MIT
 *
 * Text helpers: UTF-8, cutting, display, strict numbers, nearest names.
 */
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness/harness.h"
#include "util/buf.h"
#include "util/error.h"
#include "util/str.h"

static const struct {
    const char *text;
    size_t n;
    bool valid;
} utf8[] = {
    {"", 0, true},
    {"plain ascii, longer than eight", 30, true},
    {"\0", 1, true},
    {"\xc3\xa9", 2, true},
    {"\xe2\x82\xac", 3, true},
    {"\xf0\x9f\x98\x80", 4, true},
    {"\xf4\x8f\xbf\xbf", 4, true},
    {"\xed\x9f\xbf", 3, true},
    {"\xee\x80\x80", 3, true},
    {"\xc0\x80", 2, false}, /* overlong */
    {"\xc1\xbf", 2, false},
    {"\xe0\x9f\xbf", 3, false},
    {"\xf0\x8f\xbf\xbf", 4, false},
    {"\xed\xa0\x80", 3, false},     /* surrogate */
    {"\xf4\x90\x80\x80", 4, false}, /* above U+10FFFF */
    {"\xf5\x80\x80\x80", 4, false},
    {"\x80", 1, false},
    {"\xff", 1, false},
    {"\xe2\x82", 2, false}, /* cut */
    {"12345678\xff", 9, false},
    {"1234567\xc3\xa9", 9, true},
};

static void knows_utf8(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(utf8) / sizeof(utf8[0]); i++)
        if (jobq__utf8_valid(utf8[i].text, utf8[i].n) != utf8[i].valid)
            fail_msg("row %zu", i);
}

static void cuts_between_characters(void **state)
{
    static const char text[] = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80";
    static const size_t want[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 10};

    (void)state;
    for (size_t max = 0; max < 12; max++)
        assert_int_equal(jobq__utf8_cut(text, 10, max), want[max]);
    assert_int_equal(jobq__utf8_cut("\x80\x80\x80\x80\x80\x80", 6, 5),
                     5); /* no character to save */
}

static const struct {
    const char *in;
    size_t n, size;
    const char *line, *visible;
} shown[] = {
    {"plain", 5, 64, "plain", "plain"},
    {"a\nb\tc", 5, 64, "a b c", "a\nb\tc"},
    {"a\0b", 3, 64, "a b", "a\\x00b"},
    {"\x1b[31m", 5, 64, " [31m", "\\x1b[31m"},
    {"\xc2\x9b"
     "31m",
     5, 64, " 31m",
     "\xc2\x9b"
     "31m"},
    {"\xff\xfe", 2, 64, "??", "\\xff\\xfe"},
    {"\x7f", 1, 64, " ", "\\x7f"},
    {"\xe2\x82\xac\xe2\x82\xac", 6, 6, "\xe2\x82\xac", "\xe2\x82\xac"},
    {"abc", 3, 1, "", ""},
};

static void shows_text(void **state)
{
    char out[64];

    (void)state;
    for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
        assert_int_equal(jobq__str_one_line(out, shown[i].size, shown[i].in, shown[i].n),
                         strlen(shown[i].line));
        assert_string_equal(out, shown[i].line);
        assert_int_equal(jobq__str_visible(out, shown[i].size, shown[i].in, shown[i].n),
                         strlen(shown[i].visible));
        assert_string_equal(out, shown[i].visible);
    }
}

static const struct {
    const char *text;
    bool is_int;
    int64_t integer;
    bool is_double;
    double number;
} numbers[] = {
    {"0", true, 0, true, 0},
    {"-7", true, -7, true, -7},
    {"9223372036854775807", true, INT64_MAX, true, 9223372036854775807.0},
    {"-9223372036854775808", true, INT64_MIN, true, -9223372036854775808.0},
    {"9223372036854775808", false, 0, true, 9223372036854775808.0},
    {"1.5", false, 0, true, 1.5},
    {"-0.25", false, 0, true, -0.25},
    {"1e3", false, 0, true, 1000},
    {"", false, 0, false, 0},
    {"-", false, 0, false, 0},
    {"+1", false, 0, false, 0},
    {" 1", false, 0, false, 0},
    {"1 ", false, 0, false, 0},
    {"1\n", false, 0, false, 0},
    {"0x10", false, 0, false, 0},
    {"1,5", false, 0, false, 0},
    {"1.5.5", false, 0, false, 0},
    {"1e", false, 0, false, 0},
    {"nan", false, 0, false, 0},
    {"inf", false, 0, false, 0},
    {"1e999", false, 0, false, 0},
    {"--1", false, 0, false, 0},
    {"1-1", false, 0, false, 0},
};

static void reads_numbers(void **state)
{
    /* A host program's locale must not change what is read, when one with a decimal comma is
     * installed. */
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        if (k == 1 && !jobq_test_comma_locale())
            continue;
        for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
            int64_t integer = 0;
            double number = 0;
            size_t n = strlen(numbers[i].text);
            bool is_int = jobq__str_int(numbers[i].text, n, &integer),
                 is_double = jobq__str_double(numbers[i].text, n, &number);

            if (is_int != numbers[i].is_int || (is_int && integer != numbers[i].integer) ||
                is_double != numbers[i].is_double ||
                (is_double && (number < numbers[i].number || number > numbers[i].number)))
                fail_msg("\"%s\" in %s: %d %lld, %d %g", numbers[i].text,
                         k ? "a locale with a comma" : "C", is_int, (long long)integer, is_double,
                         number);
        }
    }
    setlocale(LC_ALL, "C");
    {
        int64_t integer;
        double number;

        assert_false(jobq__str_int("1\0", 2, &integer));
        assert_false(jobq__str_double("1\0", 2, &number));
    }
}

/* Doubles as stores, events and JSON have them, in a locale with a comma too; the host's own stays
 * as it was. */
static void writes_doubles(void **state)
{
    static const struct {
        double value;
        int digits;
        const char *text;
    } rows[] = {
        {0, 17, "0"},
        {0.5, 17, "0.5"},
        {-2.25, 15, "-2.25"},
        {0.1, 17, "0.10000000000000001"},
        {0.1, 15, "0.1"},
        {1234567.0, 15, "1234567"},
        {-1.7976931348623157e308, 17, "-1.7976931348623157e+308"},
        {4.9406564584124654e-324, 17, "4.9406564584124654e-324"},
    };
    char text[40], own[40];
    jobq__buf line = {0};

    (void)state;
    for (int k = 0; k < 2; k++) {
        if (k == 1 && !jobq_test_comma_locale())
            continue;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            jobq__str_put_double(text, rows[i].digits, rows[i].value);
            assert_string_equal(text, rows[i].text);
            if (memcmp(&(double){jobq__str_to_double(text)}, &rows[i].value, sizeof(double)) != 0)
                fail_msg("%s read as %g", text, jobq__str_to_double(text));
        }
        assert_int_equal(jobq__format(text, sizeof(text), "%.1f %s %.3g", 0.5, "s", 1.25), 10);
        assert_string_equal(text, "0.5 s 1.25");
        jobq__error_set(JOBQ_EINVAL, "a wait of %.3g s", 0.25);
        assert_string_equal(jobq_error_message(jobq_error_last()), "a wait of 0.25 s");
        jobq__error_clear();
        jobq__buf_addf(&line, "%.1f", 2.5);
        assert_string_equal(jobq__buf_text(&line), k ? "2.52.5" : "2.5");
        snprintf(own, sizeof(own), "%.1f", 0.5);
        assert_string_equal(own, k ? "0,5" : "0.5");
    }
    assert_true(jobq__str_to_double("0.25 and more") > 0.2);
    assert_true(isinf(jobq__str_to_double("-Infinity")));
    jobq__str_put_double(text, 17, INFINITY);
    assert_string_equal(text, "inf");
    jobq__buf_free(&line);
    setlocale(LC_ALL, "C");
}

static const char *candidate(void *payload, size_t i)
{
    static const char *const words[] = {"max_time", "max_jobs", "timeout", "tries", "top", NULL};

    (void)payload;
    return words[i];
}

static void finds_the_nearest(void **state)
{
    static const struct {
        const char *word, *want;
    } rows[] = {
        {"max_tme", "max_time"},
        {"timout", "timeout"},
        {"max_jbs", "max_jobs"},
        {"rteis", NULL}, /* two swaps of five letters */
        {"tires", "tries"},
        {"rties", "tries"},
        {"TRIES", "tries"},
        {"tpo", "top"},
        {"nope", NULL}, /* of "top" two letters are left */
        {"stop", NULL}, /* the first letter is seldom the mistyped one */
        {"trys", NULL},
        {"tri", "tries"},
        {"time", "timeout"},
        {"max", NULL}, /* of which? */
        {"timeoutSeconds", "timeout"},
        {"timeout-ms", "timeout"},
        {"topic", NULL},
        {"zzzz", NULL},
        {"", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *got = jobq__str_nearest(rows[i].word, candidate, NULL);

        if (rows[i].want)
            assert_string_equal(got ? got : "(none)", rows[i].want);
        else
            assert_null(got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knows_utf8),     cmocka_unit_test(cuts_between_characters),
        cmocka_unit_test(shows_text),     cmocka_unit_test(reads_numbers),
        cmocka_unit_test(writes_doubles), cmocka_unit_test(finds_the_nearest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
