/* SPDX-License-Identifier: MIT
 *
 * work --reload: a small parent that starts the same command line as its child again and again, and
 * the files that decide when. The parent runs none of the application's code; the child says what
 * it has loaded.
 */
#ifndef JOBQ_CONSOLE_RELOAD_H
#define JOBQ_CONSOLE_RELOAD_H

#include <sys/types.h>

#include "console/console.h"

/* ---- reload_files.c: files by what they were when the child was started ---------------------- */

typedef struct jobq__watched_file jobq__watched_file;
typedef struct {
    jobq__watched_file *list;
    size_t count, room;
} jobq__files;

/* A file that is known already keeps its state; what is no regular file is passed over. */
void jobq__files_add(jobq__files *files, const char *path, size_t n);
/* Those that are not as they were, with the state taken over; *path_out: the first one's. */
size_t jobq__files_look(jobq__files *files, const char **path_out);
void jobq__files_free(jobq__files *files);

/* ---- reload_child.c: one life of the command line -------------------------------------------- */

/* At the start of the command line: is this process the child of such a parent? Remembers the way
 * to it and takes the mark out of the environment. */
bool jobq__reload_is_child(void);
/* Starts this process's own command line again, in a process group of its own; `channel` is its end
 * of the way to us. The child's id, or -1 with errno. */
pid_t jobq__reload_spawn(int channel);

/* ---- reload.c -------------------------------------------------------------------------------- */

/* The parent's life; returns the exit code. */
int jobq__reload_run(jobq__cli *cli);

#endif
