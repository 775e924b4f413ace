/* SPDX-License-Identifier: MIT
 *
 * The reader's inside, shared by the two formats: where it stands, the open containers, the keys
 * seen. A reader may live on the stack (payload_check); it must not be moved.
 */
#ifndef JOBQ_PAYLOAD_READER_H
#define JOBQ_PAYLOAD_READER_H

#include <jobqueue/payload.h>

#include "payload/keys.h"
#include "util/buf.h"

enum { JOBQ__FRAME_LIST, JOBQ__FRAME_MAP, JOBQ__FRAME_PAIRS /* JSON: {"$map": [[k, v], ...]} */ };

/* One open container. */
typedef struct {
    uint64_t left; /* values still to come; a map's keys count too, so an even number means a key is
                      next */
    jobq__key_mark keys;
    size_t held; /* length of `held` when it was opened */
    uint8_t kind;
    bool begun; /* JSON: a value has been read, so a separator comes first */
} jobq__frame;

struct jobq_reader {
    const char *p;
    size_t n, at;
    int format, depth;
    bool begun; /* the root value has been started */
    int code;   /* sticks once set */
    jobq_problem problem;
    const char *what;
    size_t what_at;
    uint64_t owed;     /* values promised by all open containers */
    jobq__buf scratch; /* JSON: the current text, where it had escapes */
    jobq__buf held;    /* JSON: keys with escapes, as long as their map is open */
    jobq__buf counts;  /* JSON: uint32_t per bracket in order of opening: values inside */
    size_t bracket;    /* JSON: the next entry of counts */
    jobq__keys keys;
    jobq__frame frames[JOBQ_MAX_DEPTH];
};

void jobq__reader_init(jobq_reader *r);
void jobq__reader_fini(jobq_reader *r);
/* jobq_reader_next without clearing the thread's error record. */
int jobq__reader_step(jobq_reader *r, jobq_token *token);

/* Refuses the body; sticks. Returns JOBQ_EPAYLOAD. */
int jobq__reader_fail(jobq_reader *r, jobq_problem problem, size_t at, const char *what);
int jobq__reader_nomem(jobq_reader *r);
/* Opens a container of `count` values or pairs. */
int jobq__reader_enter(jobq_reader *r, int kind, uint64_t count, size_t at);
void jobq__reader_leave(jobq_reader *r);
/* Is a key next? */
static inline bool jobq__frame_wants_key(const jobq__frame *f)
{
    return f->kind != JOBQ__FRAME_LIST && !(f->left & 1);
}
/* Checks a key's kind and that its map has no equal one, marks the token. */
int jobq__reader_key(jobq_reader *r, jobq_token *key, int base, size_t offset, size_t at);

int jobq__json_next(jobq_reader *r, jobq_token *token);

#endif
