dnl SPDX-License-Identifier: MIT
dnl The extension bundles the core by default; --with-libjobqueue links an installed one (or a build tree:
dnl JOBQUEUE_INCDIR and JOBQUEUE_LIBDIR in the environment say where its headers and library lie).
PHP_ARG_ENABLE([jobqueue],
  [whether to enable the job queue],
  [AS_HELP_STRING([--enable-jobqueue], [Enable the job queue])], [yes])
PHP_ARG_WITH([libjobqueue],
  [for an installed libjobqueue],
  [AS_HELP_STRING([[--with-libjobqueue[=DIR]]], [Link this libjobqueue instead of bundling the core])],
  [no], [no])

if test "$PHP_JOBQUEUE" != "no"; then
  AC_PATH_PROG([PKG_CONFIG], [pkg-config], [no])
  jobqueue_sources="jobqueue.c conf.c error.c value_write.c value_read.c callback.c events.c handler.c \
    attempt.c run.c output.c fault.c \
    classes/queue.c classes/push.c classes/push_many.c classes/dead.c classes/worker.c classes/next.c classes/job.c \
    classes/job_info.c classes/stats.c classes/event.c classes/console.c classes/numbers.c \
    classes/as_job.c classes/as_job_build.c classes/state.c classes/exceptions.c"
  jobqueue_cflags="-std=gnu11 -fvisibility=hidden -Wall -Wno-unused-parameter -Wno-maybe-uninitialized -DZEND_ENABLE_STATIC_TSRMLS_CACHE=1"

  if test "$PHP_LIBJOBQUEUE" != "no"; then
    if test -n "$JOBQUEUE_LIBDIR"; then
      jobqueue_incdir="$JOBQUEUE_INCDIR"
      jobqueue_libdir="$JOBQUEUE_LIBDIR"
    elif test "$PHP_LIBJOBQUEUE" != "yes"; then
      jobqueue_incdir="$PHP_LIBJOBQUEUE/include"
      jobqueue_libdir="$PHP_LIBJOBQUEUE/$PHP_LIBDIR"
    else
      jobqueue_incdir=`$PKG_CONFIG --variable=includedir libjobqueue`
      jobqueue_libdir=`$PKG_CONFIG --variable=libdir libjobqueue`
    fi
    test -f "$jobqueue_incdir/jobqueue/jobqueue.h" || AC_MSG_ERROR([libjobqueue: no jobqueue/jobqueue.h in "$jobqueue_incdir"])
    PHP_ADD_INCLUDE([$jobqueue_incdir])
    PHP_ADD_LIBRARY_WITH_PATH([jobqueue], [$jobqueue_libdir], [JOBQUEUE_SHARED_LIBADD])
  else
    jobqueue_core=PHP_EXT_SRCDIR()/libjobqueue
    if test ! -d "$jobqueue_core" && test -d PHP_EXT_SRCDIR()/../libjobqueue; then
      ln -s ../libjobqueue "$jobqueue_core"
    fi
    test -f "$jobqueue_core/include/jobqueue/jobqueue.h" || AC_MSG_ERROR([the core's sources are not in "$jobqueue_core"; use --with-libjobqueue])
    AC_MSG_CHECKING([for msgpack and sqlite3])
    jobqueue_msgpack=msgpack
    $PKG_CONFIG --exists msgpack || jobqueue_msgpack=msgpack-c
    $PKG_CONFIG --exists $jobqueue_msgpack sqlite3 || AC_MSG_ERROR([install libmsgpack-dev and libsqlite3-dev])
    AC_MSG_RESULT([yes])
    PHP_EVAL_INCLINE([`$PKG_CONFIG --cflags $jobqueue_msgpack sqlite3`])
    PHP_EVAL_LIBLINE([`$PKG_CONFIG --libs $jobqueue_msgpack sqlite3`], [JOBQUEUE_SHARED_LIBADD])
    PHP_ADD_LIBRARY([m], [], [JOBQUEUE_SHARED_LIBADD])
    jobqueue_files=`cd "$jobqueue_core/" && find . -name '*.c' | sort | sed 's,^\./,libjobqueue/,'`
    jobqueue_sources="$jobqueue_sources "`echo $jobqueue_files`
    for jobqueue_folder in `cd "$jobqueue_core/" && find . -name '*.c' | sed 's,^\./,,; s,/*[[^/]]*$,,' | sort -u`; do
      PHP_ADD_BUILD_DIR([$ext_builddir/libjobqueue/$jobqueue_folder])
    done
    PHP_ADD_INCLUDE([$jobqueue_core])
    PHP_ADD_INCLUDE([$jobqueue_core/include])
    jobqueue_cflags="$jobqueue_cflags -D_GNU_SOURCE -DJOBQ_WITH_SQLITE=1"
  fi

  PHP_ADD_BUILD_DIR([$ext_builddir/classes])
  PHP_ADD_INCLUDE([PHP_EXT_SRCDIR()])
  PHP_NEW_EXTENSION([jobqueue], [$jobqueue_sources], [$ext_shared],, [$jobqueue_cflags])
  PHP_ADD_EXTENSION_DEP([jobqueue], [date])
  PHP_ADD_EXTENSION_DEP([jobqueue], [random], [true])
  PHP_SUBST([JOBQUEUE_SHARED_LIBADD])
fi
