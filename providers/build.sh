#!/usr/bin/env bash
# Builds the built-in providers and the tests' probes, byte for byte the same anywhere.
#   build.sh                    writes workers/providers/ and tests/providers/fixtures/, each with SHA256SUMS
#   build.sh --check            builds again from nothing and compares with both SHA256SUMS
#   build.sh FILE.zig OUT.wasm  builds one provider of your own
# Needs python3 with venv, node >= 20 and npm; brings ziglang (PyPI) and jco-transpile (npm), pinned by hash.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=${PROVIDERS_BUILD_DIR:-$here/.build}
builtin="echo text_digest file_write http spin"
fixtures="fs_probe http_probe log_probe"
builtin_home=$here/../workers/providers
fixtures_home=$here/../tests/providers/fixtures

say() { printf 'providers: %s\n' "$*" >&2; }

bring_tools() {
  local needed
  for needed in node npm; do
    command -v "$needed" >/dev/null || { say "$needed is needed (Node.js 20 or later; Debian: apt install nodejs npm)"; exit 1; }
  done
  node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' || { say "Node.js $(node --version) is too old; 20 or later is needed"; exit 1; }
  if ! cmp -s "$here/tools/requirements.lock" "$build/venv/requirements.lock"; then
    say "bringing the Zig compiler (100 MB, once)"
    rm -rf "$build/venv"
    "${PYTHON:-python3}" -m venv "$build/venv"
    "$build/venv/bin/python" -m pip install -q --disable-pip-version-check --only-binary :all: --require-hashes \
      -r "$here/tools/requirements.lock"
    cp "$here/tools/requirements.lock" "$build/venv/"
  fi
  if ! cmp -s "$here/tools/package-lock.json" "$build/npm/installed-lock.json"; then
    say "bringing wit-component (once)"
    rm -rf "$build/npm" && mkdir -p "$build/npm"
    cp "$here/tools/package.json" "$here/tools/package-lock.json" "$build/npm/"
    (cd "$build/npm" && npm ci --ignore-scripts --omit=optional --no-audit --no-fund --no-update-notifier --loglevel=error) >&2
    cp "$here/tools/package-lock.json" "$build/npm/installed-lock.json"
  fi
  cp "$here/tools/component.mjs" "$build/npm/"
}

# compile SOURCE OUT: Zig -> core module -> component. The core's name is fixed: nothing of the paths gets into the bytes.
compile() {
  local core=$build/core.wasm
  ZIG_GLOBAL_CACHE_DIR=$cache ZIG_LOCAL_CACHE_DIR=$cache "$build/venv/bin/python" -m ziglang build-exe \
    -target wasm32-freestanding -mcpu mvp+bulk_memory+sign_ext+nontrapping_fptoint \
    -O ReleaseSafe -fstrip -fno-entry -rdynamic --stack 65536 --name core \
    --dep provider "-Mroot=$1" "-Mprovider=$here/guest/provider.zig" "-femit-bin=$core"
  node "$build/npm/component.mjs" "$core" "$here/../workers/wit/provider.wit" provider "$2"
}

# compile_all FOLDER OUT NAMES…
compile_all() {
  local folder=$1 out=$2 name
  shift 2
  mkdir -p "$out"
  for name in "$@"; do compile "$folder/$name.zig" "$out/$name.wasm"; done
}

cache=$build/zig-cache
case ${1:-} in
  "")
    bring_tools
    compile_all "$here/builtin" "$builtin_home" $builtin
    compile_all "$here/fixtures" "$fixtures_home" $fixtures
    for home in "$builtin_home" "$fixtures_home"; do (cd "$home" && sha256sum -- *.wasm >SHA256SUMS); done
    ;;
  --check)
    bring_tools
    cache=$build/check-cache
    rm -rf "$cache" "$build/check"
    compile_all "$here/builtin" "$build/check/builtin" $builtin
    compile_all "$here/fixtures" "$build/check/fixtures" $fixtures
    (cd "$build/check/builtin" && sha256sum -c "$builtin_home/SHA256SUMS")
    (cd "$build/check/fixtures" && sha256sum -c "$fixtures_home/SHA256SUMS")
    ;;
  *.zig)
    [ $# = 2 ] || { say "usage: build.sh FILE.zig OUT.wasm"; exit 2; }
    bring_tools
    compile "$1" "$2"
    ;;
  *)
    say "usage: build.sh [--check | FILE.zig OUT.wasm]"
    exit 2
    ;;
esac
