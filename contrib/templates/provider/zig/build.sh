#!/usr/bin/env bash
# Builds provider.wasm of provider.zig: the same bytes on any machine. Needs python3 with venv, Node.js 20 and npm; what
# else it needs, tools/*.lock and tools/package-lock.json pin by hash: ziglang (PyPI), jco-transpile (npm). They come once,
# into PROVIDER_TOOLS (default: the user's cache), 190 MB. guest/ is the library that provider.zig imports.
set -euo pipefail
cd "$(dirname "$0")"
build=${PROVIDER_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/action-gateway/providers}/zig
. tools/bring.sh
. tools/zig.sh
hold_tools "$build"
bring_zig tools
compile_zig provider.zig provider.wasm guest wit/provider.wit "$build/cache"
