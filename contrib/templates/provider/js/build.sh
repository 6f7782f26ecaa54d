#!/usr/bin/env bash
# Builds provider.wasm of provider.js: a JavaScript engine with your module in it. Needs Node.js 20 and npm; componentize-js
# (npm) is pinned by hash in tools/package-lock.json and comes once, into PROVIDER_TOOLS (default: the user's cache),
# 400 MB.
set -euo pipefail
cd "$(dirname "$0")"
build=${PROVIDER_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/action-gateway/providers}/js
. tools/bring.sh
hold_tools "$build"
bring_npm tools "$build/npm"
cp tools/componentize.mjs "$build/npm/"
node "$build/npm/componentize.mjs" "$PWD/provider.js" "$PWD/wit" provider "$PWD/provider.wasm"
