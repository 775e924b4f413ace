/* SPDX-License-Identifier: MIT
 *
 * A command line as words, without a shell: no variables, no wildcards, no operators.
 */
#include <stdlib.h>
#include <string.h>

#include "exec.h"

static const char blanks[] = " \t\r\n";

static bool is_escape(const char *p, char quote)
{
    return *p == '\\' && (quote == '\0' || (quote == '"' && (p[1] == '"' || p[1] == '\\')));
}

/* One word from *text on to `out`, which has room for the rest of the text; a problem or NULL. */
static const char *take_word(const char **text, char *out)
{
    const char *p = *text;
    char quote = '\0';

    for (; *p && (quote || !strchr(blanks, *p)); p++) {
        if (is_escape(p, quote)) {
            if (!*++p)
                return "ends with a backslash";
            *out++ = *p;
        } else if (quote ? *p == quote : *p == '\'' || *p == '"') {
            quote = (char)(quote ? '\0' : *p);
        } else {
            *out++ = *p;
        }
    }
    *out = '\0';
    *text = p;
    return quote ? "has a quote that is not closed" : NULL;
}

void words_free(char **words)
{
    for (size_t i = 0; words && words[i]; i++)
        free(words[i]);
    free(words);
}

char **words_split(const char *text, const char **problem_out)
{
    size_t most = strlen(text) / 2 + 2, count = 0;
    char **words = calloc(most, sizeof(*words));

    *problem_out = words ? NULL : "cannot be kept: out of memory";
    while (!*problem_out) {
        text += strspn(text, blanks);
        if (!*text)
            break;
        words[count] = malloc(strlen(text) + 1);
        *problem_out =
            words[count] ? take_word(&text, words[count]) : "cannot be kept: out of memory";
        count++;
    }
    if (!*problem_out && (count == 0 || !*words[0]))
        *problem_out = "names no program";
    if (!*problem_out)
        return words;
    words_free(words);
    return NULL;
}
