#!/usr/bin/env bash
# Writes the lock files anew; needs uv. Pass --upgrade to take newer versions.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../requirements"

lock() {
    uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
        --no-emit-index-url --no-emit-find-links "$@"
}

lock "$@" build.in runtime.in fast.in --output-file runtime.txt
lock "$@" dev.in --output-file dev.txt
