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

dnl Before configure looks for a compiler and says less about it when there is none.
m4_divert_text([INIT_PREPARE], [
jobqueue_cc=$CC
for jobqueue_tool in cc gcc; do
  test -n "$jobqueue_cc" || jobqueue_cc=`command -v $jobqueue_tool`
done
if test -z "$jobqueue_cc"; then
  echo "configure: error: jobqueue: no C compiler is here (Debian: apt-get install build-essential)" >&2
  exit 1
fi
if ! jobqueue_said=`echo 'int main(void) { return 0; }' | $jobqueue_cc $CFLAGS $LDFLAGS -x c -o conftest.cc - 2>&1`; then
  printf '%s\n' "$jobqueue_said" "configure: error: jobqueue: the C compiler $jobqueue_cc makes no program (Debian: apt-get install build-essential)" >&2
  exit 1
fi
rm -f conftest.cc
])

dnl JOBQUEUE_NEEDS(MODULE >= VERSION, PACKAGE): notes it in jobqueue_missing and jobqueue_packages when pkg-config does not have it
AC_DEFUN([JOBQUEUE_NEEDS], [
  if ! $PKG_CONFIG --exists "$1"; then
    jobqueue_old=`$PKG_CONFIG --modversion "m4_bpatsubst([$1], [ .*])" 2>/dev/null`
    jobqueue_missing="${jobqueue_missing:+$jobqueue_missing and }$1${jobqueue_old:+ (here is $jobqueue_old)}"
    jobqueue_packages="$jobqueue_packages $2"
  fi
])

dnl JOBQUEUE_DRIVER(FOLDER, WANTED, MODULES, PACKAGES): takes the driver when its client library is there; "auto" goes on without
AC_DEFUN([JOBQUEUE_DRIVER], [
  AC_MSG_CHECKING([for the job queue driver $1])
  jobqueue_with=0
  if test "$2" != "no" && $PKG_CONFIG --exists "$3"; then
    jobqueue_with=1
    jobqueue_modules="$jobqueue_modules `echo '$3' | sed 's/ *>= *[[0-9.]]*//g'`"
    AC_MSG_RESULT([yes])
  elif test "$2" != "no" && test "$2" != "auto"; then
    AC_MSG_ERROR([the job queue driver $1 needs $3 (Debian: apt-get install $4); --without-jobqueue-$1 leaves it out])
  else
    jobqueue_left_out="$jobqueue_left_out $1"
    if test "$2" = "no"; then
      AC_MSG_RESULT([no, as told])
    else
      AC_MSG_RESULT([no, it would need $3 (Debian: apt-get install $4)])
    fi
  fi
  jobqueue_cflags="$jobqueue_cflags -DJOBQ_WITH_[]m4_toupper([$1])=$jobqueue_with"
])

if test "$PHP_JOBQUEUE" != "no"; then
  jobqueue_php=`$PHP_CONFIG --version`
  if test `$PHP_CONFIG --vernum` -lt 80200; then
    AC_MSG_ERROR([jobqueue needs PHP 8.2 or later, and $PHP_CONFIG is of PHP $jobqueue_php; another one is taken with phpize and --with-php-config of that version (Debian 12: php8.2-dev)])
  fi
  test -n "$PKG_CONFIG" || AC_PATH_PROG([PKG_CONFIG], [pkg-config], [no])
  if test "$PKG_CONFIG" = "no" || test -z "$PKG_CONFIG"; then
    AC_MSG_ERROR([jobqueue: pkg-config is missing, so no library can be found (Debian: apt-get install pkg-config)])
  fi
  command -v "${MAKE:-make}" >/dev/null 2>&1 || AC_MSG_ERROR([jobqueue: make is missing (Debian: apt-get install make)])
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
      jobqueue_triplet=`$CC -print-multiarch 2>/dev/null`
      test -e "$jobqueue_libdir/libjobqueue.so" || test ! -e "$jobqueue_libdir/$jobqueue_triplet/libjobqueue.so" || jobqueue_libdir="$jobqueue_libdir/$jobqueue_triplet"
    elif $PKG_CONFIG --exists libjobqueue; then
      jobqueue_incdir=`$PKG_CONFIG --variable=includedir libjobqueue`
      jobqueue_libdir=`$PKG_CONFIG --variable=libdir libjobqueue`
    else
      AC_MSG_ERROR([pkg-config knows no libjobqueue (Debian: apt-get install libjobqueue-dev); --with-libjobqueue=DIR says where it lies, without it the core is compiled in])
    fi
    if test ! -f "$jobqueue_incdir/jobqueue/jobqueue.h"; then
      AC_MSG_ERROR([libjobqueue: no jobqueue/jobqueue.h in "$jobqueue_incdir" (Debian: apt-get install libjobqueue-dev)])
    fi
    AC_MSG_CHECKING([for the version of libjobqueue])
    jobqueue_own=
    for jobqueue_core in PHP_EXT_SRCDIR()/libjobqueue PHP_EXT_SRCDIR()/../libjobqueue; do
      test -n "$jobqueue_own" || jobqueue_own=`sed -n 's/^#define JOBQ_VERSION "\(.*\)"/\1/p' "$jobqueue_core/include/jobqueue/version.h" 2>/dev/null`
    done
    jobqueue_installed=`sed -n 's/^#define JOBQ_VERSION "\(.*\)"/\1/p' "$jobqueue_incdir/jobqueue/version.h" 2>/dev/null`
    AC_MSG_RESULT([$jobqueue_installed])
    jobqueue_newer=`printf '%s\n' "$jobqueue_own" "$jobqueue_installed" | sort -V | tail -n 1`
    if test -n "$jobqueue_own" && test "$jobqueue_newer" != "$jobqueue_installed"; then
      AC_MSG_ERROR([this is the extension of jobqueue $jobqueue_own, and the libjobqueue in "$jobqueue_incdir" is older: $jobqueue_installed (Debian: libjobqueue-dev of $jobqueue_own); without --with-libjobqueue the core is compiled in])
    fi
    test -e "$jobqueue_libdir/libjobqueue.so" || AC_MSG_ERROR([libjobqueue: no libjobqueue.so in "$jobqueue_libdir" (Debian: apt-get install libjobqueue-dev)])
    PHP_ADD_INCLUDE([$jobqueue_incdir])
    PHP_ADD_LIBRARY_WITH_PATH([jobqueue], [$jobqueue_libdir], [JOBQUEUE_SHARED_LIBADD])
  else
    jobqueue_core=PHP_EXT_SRCDIR()/libjobqueue
    if test ! -d "$jobqueue_core" && test -d PHP_EXT_SRCDIR()/../libjobqueue; then
      ln -s ../libjobqueue "$jobqueue_core"
    fi
    test -f "$jobqueue_core/include/jobqueue/jobqueue.h" || AC_MSG_ERROR([the core's sources are not in "$jobqueue_core"; use --with-libjobqueue])
    AC_MSG_CHECKING([for msgpack-c and SQLite])
    jobqueue_missing=
    jobqueue_packages=
    jobqueue_modules=msgpack-c
    if ! $PKG_CONFIG --exists msgpack-c; then
      JOBQUEUE_NEEDS([msgpack >= 3], [libmsgpack-dev])
      jobqueue_modules=msgpack
    fi
    JOBQUEUE_NEEDS([sqlite3 >= 3.35], [libsqlite3-dev])
    if test -n "$jobqueue_missing"; then
      AC_MSG_ERROR([jobqueue needs $jobqueue_missing (Debian: apt-get install$jobqueue_packages)])
    fi
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
