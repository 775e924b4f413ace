#!/bin/bash
# SPDX-License-Identifier: MIT
#
# The pages "in two minutes" as a newcomer goes through them: the packages lie there, are installed by the commands of the page, and
# everything else on the page runs on what was installed. PEAR, HOME and the extension's folder are private ones.
set -u
. "$(dirname "$0")/common.bash"
php_config=${PHP_CONFIG:-php-config}
phpize=${PHPIZE:-phpize}
php=${TEST_PHP_EXECUTABLE:-php}
export CFLAGS="${CFLAGS:-} -O0" PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_NO_INDEX=1
unset PYTHONPATH LD_LIBRARY_PATH

make_packages() {
    local kind there
    mkdir "$folder/packages"
    for kind in source php python; do
        there=$(made $kind) && cp "$there"/* "$folder/packages/" || return
    done
}

command_file() { # NAME LINE...
    local name=$1
    shift
    printf '%s\n' '#!/bin/sh' "$@" >"$folder/bin/$name"
    chmod +x "$folder/bin/$name"
}

# pecl that installs into the folder, and a PHP that loads what is there; where nothing is, it has no extension.
prepare_commands() {
    mkdir -p "$folder/bin" "$folder/ext"
    command_file php-config "[ \"\$*\" != --extension-dir ] || { echo '$folder/ext'; exit; }" \
        "[ \"\$*\" != --prefix ] || { echo '$folder'; exit; }" "exec '$(command -v "$php_config")' \"\$@\""
    command_file phpize "exec '$(command -v "$phpize")' \"\$@\""
    command_file pecl "exec '$(command -v pecl)' -C '$folder/pear.conf' -c '$folder/pear.conf' -d php_prefix='$folder/bin/' -d ext_dir='$folder/ext' \"\$@\""
    command_file php "[ ! -f '$folder/ext/jobqueue.so' ] || set -- -d 'extension=$folder/ext/jobqueue.so' \"\$@\"" \
        "exec '$(command -v "$php")' -n \"\$@\""
    command_file python3 "exec '${PYTHON:-/usr/bin/python3}' \"\$@\""
    pear config-create "$folder" "$folder/pear.conf"
}

check 'the packages are made' make_packages
check 'commands of a user who has nothing yet' prepare_commands
JOBQUEUE_PACKAGES=$folder/packages JOBQUEUE_INSTALL_BIN=$folder/bin "$root/tools/check-docs" --install
