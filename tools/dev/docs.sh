# SPDX-License-Identifier: MIT
# The documentation as a site (MkDocs), from doc/ and from the sources.
# shellcheck shell=bash

# Any broken link, heading or warning ends it.
make_site() {
    rm -rf "$BUILD/site"
    PYTHONPATH=$(python_path) LD_LIBRARY_PATH=$(library_path) "$PYTHON" "$ROOT/tools/gen-site" "$BUILD/site/src" &&
        mkdocs build --quiet --strict --config-file "$ROOT/mkdocs.yml"
}
