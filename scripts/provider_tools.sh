#!/usr/bin/env bash
# Brings what `gateway new provider` builds with, once for each state of the templates, by building a provider in each
# language: compilers and packages, pinned by hash, into FOLDER. A language whose own tool is missing (Node.js, rustup) is
# left out and its test is skipped, which CI takes for a failure.
# Usage: provider_tools.sh GATEWAY FOLDER     afterwards FOLDER/LANGUAGE/ready is there for each language that can be built
set -euo pipefail
gateway=$(realpath -s "$1") folder=$(realpath -m "$2")
declare -A needed=([zig]=npm [python]= [js]=npm [rust]=rustup)

say() { printf 'provider_tools: %s\n' "$*" >&2; }

work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
missing=()
for language in zig python js rust; do
  tool=${needed[$language]}
  if [ -n "$tool" ] && ! command -v "$tool" >/dev/null; then missing+=("$language ($tool)"); continue; fi
  "$gateway" new provider tried --language "$language" --dir "$work/$language" >/dev/null
  here=$work/$language/providers/tried ready=$folder/$language/ready
  state=$(cd "$here" && find . -name build.sh -o -path './tools/*' -o -name '*.toml' -o -name Cargo.lock |
    sort | xargs cat | sha256sum)
  [ "$(cat "$ready" 2>/dev/null)" != "$state" ] || continue
  say "bringing what providers in $language are built with (not installed; once)"
  mkdir -p "$folder/$language"
  rm -f "$ready"
  PROVIDER_TOOLS=$folder RUSTUP_HOME=$folder/rust/rustup CARGO_HOME=$folder/rust/cargo \
    CARGO_TARGET_DIR=$folder/rust/target nice -n 10 bash "$here/build.sh" >&2 || {
    say "a provider in $language could not be built; see above"; exit 1; }
  printf '%s\n' "$state" > "$ready"
done
[ ${#missing[@]} -eq 0 ] || {
  say "left out, since a tool is not installed: ${missing[*]}; their tests are skipped"
  [ -z "${CI:-}" ]; }
