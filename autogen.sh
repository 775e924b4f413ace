#!/bin/sh
# SPDX-License-Identifier: MIT
# Makes `configure` and `Makefile.in` from configure.ac and Makefile.am.
set -eu
cd "$(dirname "$0")"
mkdir -p m4 build-aux
autoreconf --install --force

# libtool installs into a folder with a blank in its name only when the name is quoted.
sed -e 's|"$install_shared_prog $dir/$srcname $destdir/$realname"|"$install_shared_prog \\"\\$dir/\\$srcname\\" \\"\\$destdir/\\$realname\\""|' \
    -e 's|"$striplib $destdir/$realname"|"$striplib \\"\\$destdir/\\$realname\\""|' \
    -e 's|"(cd $destdir &&|"(cd \\"\\$destdir\\" \&\&|' \
    -e 's|"$install_prog $instname $destdir/$name"|"$install_prog \\$instname \\"\\$destdir/\\$name\\""|' \
    -e 's|"$install_prog\\$stripme \\$file \\$destfile"|"$install_prog\\$stripme \\$file \\"\\$destfile\\""|' \
    build-aux/ltmain.sh >build-aux/ltmain.new
mv build-aux/ltmain.new build-aux/ltmain.sh
