#!/bin/bash
# SPDX-License-Identifier: MIT
#
# An application that requires the Composer package has vendor/bin/jobqueue, and it runs the application's worker and commands.
set -u
. "$(dirname "$0")/common.bash"
php=${TEST_PHP_EXECUTABLE:-php}
extension=${JOBQUEUE_EXTENSION:-$root/build/php-ext/modules/jobqueue.so}
export COMPOSER_ALLOW_SUPERUSER=1 COMPOSER_HOME=$folder/home COMPOSER_DISABLE_NETWORK=1
unset JOBQUEUE_DSN
app="$folder/an application"

# A PHP that has the extension, as `#!/usr/bin/env php` finds it.
mkdir -p "$folder/bin" "$app/src"
printf "#!/bin/sh\nexec '%s' -d extension='%s' \"\$@\"\n" "$(command -v "$php")" "$extension" >"$folder/bin/php"
chmod +x "$folder/bin/php"
ln -s "$(command -v composer)" "$folder/bin/composer"
with_extension() { PATH=$folder/bin:$PATH "$@"; }
launcher() { with_extension "$app/vendor/bin/jobqueue" "$@"; }

cat >"$app/composer.json" <<END
{
    "repositories": [{"type": "path", "url": "$root/integrations/composer"}],
    "require": {"jobqueue/jobqueue": "*@dev"},
    "autoload": {"psr-4": {"App\\\\": "src/"}}
}
END
cat >"$app/src/Greet.php" <<'END'
<?php
namespace App;

#[\JobQueue\AsJob('greet')]
final class Greet
{
    public function __construct(private string $name) {}

    public function handle(): void
    {
        echo "hello $this->name\n";
    }
}
END

install() { cd "$app" && with_extension php "$(command -v composer)" --no-interaction --quiet install; }
without_the_extension() {
    # all that this machine loads, but for an installed jobqueue
    mkdir "$folder/ini" && find "$("$php" -r 'echo PHP_CONFIG_FILE_SCAN_DIR;')" -name '*.ini' ! -name '*jobqueue*' -exec cp {} "$folder/ini/" \; &&
        ! (cd "$app" && PHP_INI_SCAN_DIR=$folder/ini "$php" "$(command -v composer)" --no-interaction install) >"$folder/out" 2>&1 &&
        { cat "$folder/out"; grep -q 'requires\? ext-jobqueue' "$folder/out"; }
}
launcher_without() {
    "$php" -n "$app/vendor/jobqueue/jobqueue/bin/jobqueue" version >"$folder/out" 2>&1
    [ $? = 2 ] && grep -q 'extension jobqueue is not loaded in this PHP.*php-jobqueue' "$folder/out"
}
knows_commands() { launcher version | grep -q "^jobqueue $(sed -n 's/^#define JOBQ_VERSION "\(.*\)"/\1/p' "$root/libjobqueue/include/jobqueue/version.h")"; }
needs_a_worker() {
    launcher work >"$folder/out" 2>&1
    [ $? = 2 ] && grep -q -- '--bootstrap=FILE' "$folder/out"
}
no_worker_in_it() {
    echo '<?php return 7;' >"$app/jobqueue.php"
    launcher stats >"$folder/out" 2>&1
    [ $? = 2 ] && grep -q 'an application/jobqueue.php" does not return a JobQueue.Worker' "$folder/out"
}
write_worker() {
    cat >"$app/jobqueue.php" <<'END'
<?php
return (new JobQueue\Worker(new JobQueue\Queue('sqlite://' . __DIR__ . '/queue.db'), output: 'quiet'))->register(App\Greet::class);
END
}
# From another folder: the worker is the application's, not the folder's.
runs_its_worker() {
    cd / && launcher push greet '{"name": "Ada"}' && launcher work --stop-when-empty >"$folder/out" && grep -qx 'hello Ada' "$folder/out"
}
counts() { launcher stats default --json | tr -d ' ' | grep -q '"ready":0' && launcher failed; }
takes_another_file() {
    sed 's/queue.db/other.db/' "$app/jobqueue.php" >"$app/other.php" && launcher push --dsn="sqlite://$app/other.db" greet '{"name": "Bob"}' &&
        launcher work --bootstrap="$app/other.php" --stop-when-empty >"$folder/out" && grep -qx 'hello Bob' "$folder/out"
}

if ! command -v composer >/dev/null; then
    echo 'ok - vendor/bin/jobqueue # SKIP composer is not installed'
    exit
fi
check 'Composer names the extension when it is missing' without_the_extension
check 'the application requires the package' install
check 'vendor/bin/jobqueue says so without the extension' launcher_without
check 'it knows the commands' knows_commands
check 'work without a worker says what it needs' needs_a_worker
check 'a jobqueue.php that returns no worker is named' no_worker_in_it
write_worker
check 'it runs the worker of jobqueue.php, with the autoloader' runs_its_worker
check 'it tells the counts of the same connection' counts
check 'work --bootstrap takes another file' takes_another_file
