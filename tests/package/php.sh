#!/bin/bash
# SPDX-License-Identifier: MIT
#
# The PHP package as people get it: made twice with the same bytes, valid for PEAR and for Composer, installed offline
# by `pecl install` into a folder of its own, loaded by a bare PHP, and clear about what is missing.
set -u
. "$(dirname "$0")/common.bash"
php_config=${PHP_CONFIG:-php-config}
phpize=${PHPIZE:-phpize}
php=${TEST_PHP_EXECUTABLE:-php}

# ---- made ---------------------------------------------------------------------------------------------------

make_twice() {
    local there
    there=$(made php) && cp -R "$there" "$folder/one" && TZ=Asia/Tokyo "$root/tools/package-php" "$folder/two" &&
        cmp "$folder"/one/* "$folder"/two/*
}
every_source() {
    tar tzf "$package" | sed 's,^[^/]*/,,' | grep '\.[ch]$' | sort >"$folder/packed"
    (cd "$root/php-ext" && find . -name '*.[ch]' -not -path './libjobqueue/*' -not -path './build/*' -not -name config.h &&
        cd "$root" && find ./libjobqueue -name '*.[ch]') | sed 's,^\./,,' | sort | diff "$folder/packed" - >&2
}
says_nothing_wrong() { pecl package-validate "$package" | grep -qx 'Validation: 0 error(s), 0 warning(s)'; }

# ---- installed ----------------------------------------------------------------------------------------------

# A PEAR of its own: registry, documents and extension go below the folder. php-config says where extensions belong.
prepare_pear() {
    mkdir -p "$folder/bin" "$folder/ext"
    cat >"$folder/bin/php-config" <<END
#!/bin/sh
case "\$*" in
--extension-dir) echo '$folder/ext' ;;
--prefix) echo '$folder' ;;
*) exec '$(command -v "$php_config")' "\$@" ;;
esac
END
    printf "#!/bin/sh\nexec '%s' \"\$@\"\n" "$(command -v "$phpize")" >"$folder/bin/phpize"
    chmod +x "$folder/bin/php-config" "$folder/bin/phpize"
    pear config-create "$folder" "$folder/pear.conf"
}
install_package() {
    MAKEFLAGS=-j$(nproc) pecl -C "$folder/pear.conf" -c "$folder/pear.conf" -d php_prefix="$folder/bin/" \
        -d ext_dir="$folder/ext" install --offline -n "$package" && [ -f "$folder/ext/jobqueue.so" ]
}
bare() { "$php" -n -d "extension=$folder/ext/jobqueue.so" "$@"; }
runs_a_job() {
    cd "$folder" && bare -r '
        $queue = new JobQueue\Queue("sqlite:queue.db");
        $queue->push("greet", ["name" => "Ada"]);
        exit((new JobQueue\Worker($queue, output: "quiet"))
            ->handle("greet", function ($job, $payload) { echo "hello $payload[name]\n"; })
            ->run(once: true));' | grep -qx 'hello Ada'
}
exports_one_name() { [ "$(nm -D --defined-only "$folder/ext/jobqueue.so" | awk '{ print $NF }')" = get_module ]; }
loads_twice() {
    "$php" -n -d "extension=$folder/ext/jobqueue.so" -d "extension=$folder/ext/jobqueue.so" \
        -r 'echo (new JobQueue\Queue("memory:"))->push("x") ? "works" : "";' >"$folder/out" 2>&1 &&
        grep -q 'already loaded' "$folder/out" && grep -q works "$folder/out"
}
tells_in_phpinfo() { bare -r 'phpinfo();' | grep -q '^Drivers => sqlite'; }
with_opcache() {
    "$php" -n -d zend_extension=opcache -d opcache.enable_cli=1 -d opcache.jit=tracing -d opcache.jit_buffer_size=16M \
        -d "extension=$folder/ext/jobqueue.so" "$@"
}
runs_with_jit() {
    cd "$folder" && with_opcache -r '
        if (!opcache_get_status()["jit"]["on"]) exit(3);
        $queue = new JobQueue\Queue("sqlite:jit.db");
        foreach (range(1, 300) as $n) $queue->push("add", ["n" => $n]);
        $sum = 0;
        (new JobQueue\Worker($queue, processes: 0, output: "quiet"))
            ->handle("add", function ($job, $payload) use (&$sum) { $sum += $payload["n"]; })
            ->run(stopWhenEmpty: true);
        echo $sum, "\n";
        exit((new JobQueue\Worker($queue, processes: 2, output: "quiet"))->handle("add", fn () => null)->run(stopWhenEmpty: true));' | grep -qx 45150
}

# ---- what is missing is named -------------------------------------------------------------------------------

# refuses TEXT OPTION...: configure of the unpacked package fails and says TEXT, where no client library is found
refuses() {
    local text=$1
    shift
    ! (cd "$folder/source" && PKG_CONFIG_LIBDIR="$folder/pc" ./configure --with-php-config="$php_config" "$@") >"$folder/out" 2>&1 &&
        { cat "$folder/out"; grep -q "error: .*$text" "$folder/out"; }
}
# What PIE's documentation allows in composer.json, and what configure knows.
pie_takes_it() {
    (cd "$folder/source" && ./configure --help) | grep -o -- '--with[a-z]*-[a-z-]*' | sed 's/^--without/--with/' | sort -u >"$folder/options" &&
        "$php" -n -r '
            $c = json_decode(file_get_contents("$argv[1]/composer.json"), true);
            $ext = $c["php-ext"];
            $kinds = ["extension-name" => "string", "priority" => "integer", "support-zts" => "boolean", "support-nts" => "boolean", "build-path" => "string",
                      "download-url-method" => "string", "os-families" => "array", "os-families-exclude" => "array", "configure-options" => "array"];
            $bad = [];
            $c["type"] === "php-ext" || $bad[] = "type";
            preg_match("~^[a-z0-9-]+/[a-z0-9-]+$~", $c["name"]) || $bad[] = "name";
            foreach ($ext as $key => $value)
                (gettype($value) === ($kinds[$key] ?? "")) || $bad[] = $key;
            preg_match("~^(ext-)?[a-z0-9_]+$~i", $ext["extension-name"]) || $bad[] = "extension-name";
            isset($ext["os-families"], $ext["os-families-exclude"]) && $bad[] = "both os-families";
            array_diff($ext["os-families"], ["windows", "bsd", "darwin", "solaris", "linux", "unknown"]) && $bad[] = "os-families";
            is_file("$argv[1]/{$ext["build-path"]}/config.m4") || $bad[] = "build-path";
            $known = file($argv[2], FILE_IGNORE_NEW_LINES);
            foreach ($ext["configure-options"] as $option) {
                array_diff(array_keys($option), ["name", "needs-value", "description"]) && $bad[] = "a key of $option[name]";
                (preg_match("~^[a-z0-9][a-z0-9_-]*$~i", $option["name"]) && is_bool($option["needs-value"])) || $bad[] = $option["name"];
                in_array("--" . str_replace("without-", "with-", $option["name"]), $known, true) || $bad[] = "$option[name] is no option of configure";
            }
            echo implode("\n", $bad), "\n";
            exit($bad ? 1 : 0);' "$root" "$folder/options"
}
unpack() {
    mkdir -p "$folder/source" "$folder/pc" && tar xzf "$package" --strip-components=1 -C "$folder/source" 2>/dev/null
    printf 'Name: x\nDescription: x\nVersion: 99\n' >"$folder/pc/msgpack.pc"
    cp "$folder/pc/msgpack.pc" "$folder/pc/sqlite3.pc"
    cd "$folder/source" && "$phpize"
}
names_the_base() { rm "$folder/pc/sqlite3.pc" && refuses 'apt-get install libsqlite3-dev'; }

check 'the package is made twice with the same bytes' make_twice
package=$(echo "$folder"/one/*.tgz)
check 'it holds every source file' every_source
check 'PEAR finds nothing wrong with it' says_nothing_wrong
check 'Composer reads composer.json' composer --no-interaction --quiet validate --no-check-all --no-check-publish "$root/composer.json"
check 'a PEAR of its own' prepare_pear
check 'pecl install works offline' install_package
check 'php --ri tells version and drivers' sh -c "'$php' -n -d extension='$folder/ext/jobqueue.so' --ri jobqueue | grep -q '^Drivers => sqlite'"
check 'it runs a job without pcntl and other extensions' runs_a_job
check 'it exports get_module and nothing else' exports_one_name
check 'listed twice, PHP goes on' loads_twice
check 'phpinfo() tells the drivers, too' tells_in_phpinfo
check 'it runs jobs beside opcache with its JIT' runs_with_jit
check 'phpize takes the unpacked package' unpack
check 'composer.json says what PIE takes and configure knows' pie_takes_it
check 'the missing client library of Redis is named' refuses 'libhiredis-dev libssl-dev' --with-jobqueue-redis
check 'the missing client library of PostgreSQL is named' refuses 'libpq-dev' --with-jobqueue-pgsql
check 'the missing client library of MariaDB is named' refuses 'libmariadb-dev' --with-jobqueue-mysql
check 'the missing base is named' names_the_base
