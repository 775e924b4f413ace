#!/bin/sh
# SPDX-License-Identifier: MIT
# Makes `configure` and `Makefile.in` from configure.ac and Makefile.am.
set -eu
cd "$(dirname "$0")"
mkdir -p m4 build-aux
exec autoreconf --install --force
