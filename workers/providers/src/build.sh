#!/usr/bin/env bash
# Builds the built-in providers and the tests' probes, byte for byte the same anywhere.
#   build.sh                    writes workers/providers/ and tests/providers/fixtures/, each with SHA256SUMS
#   build.sh --check            builds again from nothing and compares with both SHA256SUMS
#   build.sh FILE.zig OUT.wasm  builds one provider of your own
# Needs python3 with venv, node >= 20 and npm; brings ziglang (PyPI) and jco-transpile (npm), pinned by hash.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=${PROVIDERS_BUILD_DIR:-$here/../../../build/providers}
builtin="echo text_digest file_write http mcp spin"
fixtures="fs_probe http_probe log_probe"
builtin_home=$here/..
fixtures_home=$here/../../../tests/providers/fixtures

. "$here/tools/bring.sh"
. "$here/tools/zig.sh"

bring_tools() {
  hold_tools "$build"
  bring_zig "$here/tools"
}

compile() { # SOURCE OUT
  compile_zig "$1" "$2" "$here/guest" "$here/../../wit/provider.wit" "$cache"
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
