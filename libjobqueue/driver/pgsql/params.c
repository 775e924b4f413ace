/* SPDX-License-Identifier: MIT
 *
 * Binary parameters and results. Text ones would be cut at a NUL without an error.
 */
#include <endian.h>
#include <string.h>

#include "driver/pgsql/pgsql.h"

uint64_t jobq__pgsql_hash(uint64_t hash, jobq_slice bytes)
{
    for (size_t i = 0; i < bytes.n; i++)
        hash = (hash ^ ((const unsigned char *)bytes.p)[i]) * UINT64_C(1099511628211);
    return hash;
}

/* ---- parameters ------------------------------------------------------------------------------ */

static void begin(pgsql_params *p, Oid type)
{
    p->types[p->n] = type;
    p->offsets[p->n] = p->bytes.n;
}

static void end(pgsql_params *p)
{
    p->lengths[p->n] = (int)(p->bytes.n - p->offsets[p->n]);
    p->n++;
}

static void add32(pgsql_params *p, uint32_t v)
{
    uint32_t be = htobe32(v);

    jobq__buf_add(&p->bytes, &be, sizeof(be));
}

static void add64(pgsql_params *p, int64_t v)
{
    uint64_t be = htobe64((uint64_t)v);

    jobq__buf_add(&p->bytes, &be, sizeof(be));
}

void jobq__pgsql_null(pgsql_params *p, Oid type)
{
    begin(p, type);
    p->lengths[p->n++] = -1;
}

void jobq__pgsql_bool(pgsql_params *p, bool v)
{
    begin(p, PG_BOOL);
    jobq__buf_addc(&p->bytes, v ? 1 : 0);
    end(p);
}

void jobq__pgsql_int(pgsql_params *p, int64_t v)
{
    begin(p, PG_INT8);
    add64(p, v);
    end(p);
}

static void add_slice(pgsql_params *p, Oid type, jobq_slice s)
{
    if (!s.p) {
        jobq__pgsql_null(p, type);
        return;
    }
    begin(p, type);
    jobq__buf_add(&p->bytes, s.p, s.n);
    end(p);
}

void jobq__pgsql_text(pgsql_params *p, jobq_slice s)
{
    add_slice(p, PG_TEXT, s);
}

void jobq__pgsql_bytes(pgsql_params *p, jobq_slice s)
{
    add_slice(p, PG_BYTEA, s);
}

static Oid array_type(Oid element)
{
    switch (element) {
    case PG_BYTEA:
        return PG_BYTEA_ARRAY;
    case PG_TEXT:
        return PG_TEXT_ARRAY;
    case PG_INT2:
        return PG_INT2_ARRAY;
    case PG_INT4:
        return PG_INT4_ARRAY;
    default:
        return PG_INT8_ARRAY;
    }
}

void jobq__pgsql_array(pgsql_params *p, Oid element, size_t n)
{
    begin(p, array_type(element));
    add32(p, n ? 1 : 0); /* dimensions */
    add32(p, 1);         /* may hold nulls */
    add32(p, element);
    if (n) {
        add32(p, (uint32_t)n);
        add32(p, 1); /* the first one's number */
    }
}

void jobq__pgsql_put_slice(pgsql_params *p, jobq_slice s)
{
    add32(p, s.p ? (uint32_t)s.n : UINT32_MAX);
    if (s.p)
        jobq__buf_add(&p->bytes, s.p, s.n);
}

void jobq__pgsql_put_int8(pgsql_params *p, int64_t v)
{
    add32(p, 8);
    add64(p, v);
}

void jobq__pgsql_put_int4(pgsql_params *p, int32_t v)
{
    add32(p, 4);
    add32(p, (uint32_t)v);
}

void jobq__pgsql_put_int2(pgsql_params *p, int16_t v)
{
    uint16_t be = htobe16((uint16_t)v);

    add32(p, 2);
    jobq__buf_add(&p->bytes, &be, sizeof(be));
}

void jobq__pgsql_end(pgsql_params *p)
{
    end(p);
}

/* ---- results --------------------------------------------------------------------------------- */

static int64_t integer(const unsigned char *p, size_t n)
{
    uint64_t v = n && (p[0] & 0x80) && n > 1 ? UINT64_MAX : 0;

    for (size_t i = 0; i < n; i++)
        v = v << 8 | p[i];
    return (int64_t)v;
}

int64_t jobq__pgsql_get(const PGresult *res, int row, int column)
{
    if (PQgetisnull(res, row, column))
        return 0;
    return integer((const unsigned char *)PQgetvalue(res, row, column),
                   (size_t)PQgetlength(res, row, column));
}

bool jobq__pgsql_copy(const PGresult *res, int row, int column, jobq_batch *out, jobq_slice *to)
{
    *to = jobq__slice(NULL, 0);
    if (PQgetisnull(res, row, column))
        return true;
    *to = jobq_batch_copy(out, PQgetvalue(res, row, column), (size_t)PQgetlength(res, row, column));
    return to->p != NULL;
}

enum { ARRAY_HEAD = 20 };

pgsql_array jobq__pgsql_array_of(const PGresult *res, int row, int column)
{
    pgsql_array a = {0};
    size_t n = (size_t)PQgetlength(res, row, column);

    if (PQgetisnull(res, row, column) || n < ARRAY_HEAD)
        return a;
    a.p = (const unsigned char *)PQgetvalue(res, row, column) + ARRAY_HEAD;
    a.left = n - ARRAY_HEAD;
    a.count = (size_t)integer(a.p - 8, 4);
    return a;
}

bool jobq__pgsql_array_next(pgsql_array *a, jobq_slice *element_out)
{
    int64_t n;

    if (a->count == 0 || a->left < 4)
        return false;
    n = integer(a->p, 4);
    a->p += 4;
    a->left -= 4;
    a->count--;
    *element_out = jobq__slice(n < 0 ? NULL : a->p, n < 0 ? 0 : (size_t)n);
    if (n > (int64_t)a->left)
        return false;
    a->p += element_out->n;
    a->left -= element_out->n;
    return true;
}

int64_t jobq__pgsql_array_int(pgsql_array *a)
{
    jobq_slice element;

    return jobq__pgsql_array_next(a, &element) ? integer(element.p, element.n) : 0;
}
