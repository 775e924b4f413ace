/* SPDX-License-Identifier: MIT
 *
 * A host of PHP with threads, as application servers are: threads SCRIPT. Each of the threads runs
 * the script as several requests, all threads at once. 0: every request came to its end.
 */
#include <main/SAPI.h>
#include <main/php.h>
#include <main/php_main.h>
#include <sapi/embed/php_embed.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum { THREADS = 6, REQUESTS = 5 };

static const char *script;
static atomic_int failed;

static void run_script(void)
{
    zend_file_handle file;

    zend_stream_init_filename(&file, script);
    zend_first_try
    {
        if (!php_execute_script(&file) || EG(exit_status) != 0)
            failed++;
    }
    zend_catch
    {
        failed++;
    }
    zend_end_try();
    zend_destroy_file_handle(&file);
}

static void *requests(void *unused)
{
    ts_resource(0);
    for (int i = 0; i < REQUESTS; i++) {
        if (php_request_startup() == FAILURE) {
            failed++;
            break;
        }
        SG(headers_sent) = 1;
        SG(request_info).no_headers = 1;
        run_script();
        php_request_shutdown(NULL);
    }
    ts_free_thread();
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];

    if (argc != 2) {
        fprintf(stderr, "usage: threads SCRIPT\n");
        return 2;
    }
    script = argv[1];
    if (php_embed_init(0, NULL) == FAILURE)
        return 1;
    for (int i = 0; i < THREADS; i++) {
        if (pthread_create(&threads[i], NULL, requests, NULL))
            return 1;
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    php_embed_shutdown();
    printf("%d threads, %d requests each, %d of them failed\n", THREADS, REQUESTS, failed);
    return failed ? 1 : 0;
}
