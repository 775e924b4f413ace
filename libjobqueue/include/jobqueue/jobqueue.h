/* SPDX-License-Identifier: MIT
 *
 * Everything a program that pushes, works or inspects jobs needs.
 */
#ifndef JOBQUEUE_JOBQUEUE_H
#define JOBQUEUE_JOBQUEUE_H

#include <jobqueue/common.h>
#include <jobqueue/conf.h>
#include <jobqueue/control.h>
#include <jobqueue/error.h>
#include <jobqueue/events.h>
#include <jobqueue/inspect.h>
#include <jobqueue/job.h>
#include <jobqueue/payload.h>
#include <jobqueue/queue.h>
#include <jobqueue/statement.h>
#include <jobqueue/worker.h>

#endif
