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

dnl Bundled core only; a linked library has the drivers it was built with.
PHP_ARG_WITH([jobqueue-redis],
  [for the job queue's Redis driver],
  [AS_HELP_STRING([--with-jobqueue-redis], [Job queue: the Redis driver (needs hiredis and OpenSSL); default: when found])],
  [auto], [no])
PHP_ARG_WITH([jobqueue-pgsql],
  [for the job queue's PostgreSQL driver],
  [AS_HELP_STRING([--with-jobqueue-pgsql], [Job queue: the PostgreSQL driver (needs libpq); default: when found])],
  [auto], [no])
PHP_ARG_WITH([jobqueue-mysql],
  [for the job queue's MySQL driver],
  [AS_HELP_STRING([--with-jobqueue-mysql], [Job queue: the MariaDB and MySQL driver (needs libmariadb); default: when found])],
  [auto], [no])

dnl JOBQUEUE_DRIVER(FOLDER, WANTED, MODULES, PACKAGES): takes the driver when its client library is there
AC_DEFUN([JOBQUEUE_DRIVER], [
  AC_MSG_CHECKING([for the job queue driver $1])
  jobqueue_with=0
  if test "$2" != "no" && $PKG_CONFIG --exists "$3"; then
    jobqueue_with=1
    jobqueue_modules="$jobqueue_modules `echo '$3' | sed 's/ *>= *[[0-9.]]*//g'`"
    AC_MSG_RESULT([yes])
  elif test "$2" != "no" && test "$2" != "auto"; then
    AC_MSG_ERROR([it needs $3 (Debian: $4)])
  else
    jobqueue_left_out="$jobqueue_left_out $1"
    AC_MSG_RESULT([no, it would need $3 (Debian: $4)])
  fi
  jobqueue_cflags="$jobqueue_cflags -DJOBQ_WITH_[]m4_toupper([$1])=$jobqueue_with"
])

if test "$PHP_JOBQUEUE" != "no"; then
  AC_PATH_PROG([PKG_CONFIG], [pkg-config], [no])
  jobqueue_sources="jobqueue.c conf.c error.c value_write.c value_read.c callback.c events.c handler.c \
    attempt.c failed.c run.c output.c fault.c folder.c result.c lists.c reload.c \
    classes/queue.c classes/statement.c classes/push.c classes/push_many.c classes/dead.c classes/control.c classes/health.c classes/worker.c classes/next.c classes/job.c \
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
    jobqueue_modules=msgpack
    $PKG_CONFIG --exists msgpack || jobqueue_modules=msgpack-c
    $PKG_CONFIG --exists $jobqueue_modules sqlite3 || AC_MSG_ERROR([install libmsgpack-dev and libsqlite3-dev])
    AC_MSG_RESULT([yes])
    jobqueue_modules="$jobqueue_modules sqlite3"
    jobqueue_left_out=
    JOBQUEUE_DRIVER([redis], [$PHP_JOBQUEUE_REDIS], [hiredis >= 0.14 openssl >= 1.1.1], [libhiredis-dev libssl-dev])
    JOBQUEUE_DRIVER([pgsql], [$PHP_JOBQUEUE_PGSQL], [libpq >= 14], [libpq-dev])
    JOBQUEUE_DRIVER([mysql], [$PHP_JOBQUEUE_MYSQL], [libmariadb >= 3.1], [libmariadb-dev])
    PHP_EVAL_INCLINE([`$PKG_CONFIG --cflags-only-I $jobqueue_modules`])
    PHP_EVAL_LIBLINE([`$PKG_CONFIG --libs $jobqueue_modules`], [JOBQUEUE_SHARED_LIBADD])
    PHP_ADD_LIBRARY([m], [], [JOBQUEUE_SHARED_LIBADD])
    jobqueue_files=`cd "$jobqueue_core/" && find . -name '*.c' | sort | sed 's,^\./,libjobqueue/,'`
    for jobqueue_driver in $jobqueue_left_out; do
      jobqueue_files=`echo "$jobqueue_files" | grep -v "^libjobqueue/driver/$jobqueue_driver/"`
    done
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
