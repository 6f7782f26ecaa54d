#!/usr/bin/env bash
# Builds provider.wasm of app.py: a Python interpreter with your code in it, so that the bytes differ from build to build.
# Needs python3 with venv; componentize-py (PyPI) is pinned by hash in tools/requirements.lock and comes once, into
# PROVIDER_TOOLS (default: the user's cache), 60 MB.
set -euo pipefail
cd "$(dirname "$0")"
build=${PROVIDER_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/action-gateway/providers}/python
. tools/bring.sh
hold_tools "$build"
bring_python tools/requirements.lock "$build/venv"
# --stub-wasi: the gateway grants no WASI, and a module that imports it does not load.
"$build/venv/bin/componentize-py" -d wit -w provider componentize --stub-wasi app -o provider.wasm
