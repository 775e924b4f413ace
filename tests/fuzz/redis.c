/* SPDX-License-Identifier: MIT
 *
 * What a Redis server answers, from anywhere and in pieces of any size: values that can be walked
 * over, or no protocol. Texts in them are read as what stores keep: entries, numbers, addresses,
 * stored jobs.
 */
#include "driver/redis/redis.h"
#include "driver/driver.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int condition)
{
    if (!condition)
        abort();
}

static void try_text(jobq_slice text)
{
    const char *list = text.p;
    rds_address address;
    rds_entry entry;

    jobq__redis_entry(text, &entry);
    jobq__redis_id_time(text);
    must(jobq__redis_slot(text.p, text.n) < RDS_SLOTS);
    while (*list)
        if (jobq__redis_next_address(&list, 6379, &address))
            must(address.host[0] && address.port > 0 && address.port < 65536);
    must(jobq__redis_key_of(text.p, text.n).n <= text.n);
}

static void try_job(const rds_value *value)
{
    jobq_batch batch = {0};
    rds_walk walk = {value, 0};
    rds_stored stored = {.j = jobq__redis_text(&walk), .s = jobq__redis_text(&walk)};
    jobq_record *r = jobq_batch_add(&batch);
    uint8_t flags;

    stored.mark = jobq__redis_text(&walk);
    stored.entry = jobq__redis_text(&walk);
    stored.priority = (uint8_t)jobq__redis_int(&walk);
    stored.count = jobq__redis_int(&walk);
    must(r != NULL && jobq__redis_read_job(&stored, value->count & 1, &batch, r, &flags) == 0);
    must(r->id.p != NULL && r->name.p != NULL);
    must(r->id.n <= stored.j.n + stored.entry.n + 32 && r->body.n <= stored.j.n);
    jobq__batch_free(&batch);
}

static void walk_over(const rds_value *value, int depth)
{
    rds_walk walk = {value, 0};

    must(depth < 16 && value != NULL);
    jobq__redis_number_of(value);
    if (value->type == RDS_TEXT || value->type == RDS_STATUS || value->type == RDS_ERROR) {
        must(value->p != NULL && value->p[value->n] == '\0' && value->count == 0);
        try_text(jobq__slice(value->p, value->n));
    }
    for (size_t i = 0; i < value->count; i++)
        walk_over(value->item[i], depth + 1);
    if (value->type == RDS_LIST) {
        jobq__redis_time(&walk);
        try_job(value);
    }
}

/* The first byte: how many bytes come at once. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const size_t step = size ? (size_t)data[0] + 1 : 1;
    rds_link link = {.fd = -1};
    rds_value *value = NULL;
    void *reader = jobq__redis_reader_new(&link);
    int rc = 0;

    must(reader != NULL);
    for (size_t at = 1; at < size && rc >= 0; at += step) {
        const size_t n = size - at < step ? size - at : step;

        rc = jobq__redis_reader_feed(reader, (const char *)data + at, n);
        while (rc >= 0 && (rc = jobq__redis_reader_next(reader, &value)) > 0)
            walk_over(value, 0);
    }
    jobq__redis_reader_free(reader);
    jobq__arena_free(&link.arena);
    return 0;
}
