#!/usr/bin/env bash
# Makes the virtual environment that every make target runs in: hash-locked dependencies, then this project, editable.
# Usage: setup.sh VENV     PYTHON names the interpreter to build it with; without it scripts/interpreter.sh chooses.
set -euo pipefail
venv=$1

say() { printf '%s\n' "$*" >&2; }

if [ ! -x "$venv/bin/python" ]; then
  python=$(bash "$(dirname "$0")/interpreter.sh")
  if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    # Debian splits venv and ensurepip from python3 into a package of their own.
    say "setup: this Python comes without venv; installing the package python3-venv"
    as_root=(); [ "$(id -u)" = 0 ] || as_root=(sudo)
    "${as_root[@]}" apt-get update -qq && "${as_root[@]}" apt-get install -y -qq --no-install-recommends python3-venv >&2 || {
      say "setup: could not install python3-venv; install it and try again"; exit 1; }
  fi
  say "setup 1/3  virtual environment in $venv"
  rm -rf "$venv"; "$python" -m venv "$venv"
fi
bar=off; [ -t 2 ] && bar=on
say "setup 2/3  dependencies, pinned by hash (about half a minute the first time)"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --progress-bar "$bar" --require-hashes -r requirements-dev.lock
say "setup 3/3  this project"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable . --editable sdk
# As an installer does; otherwise every process that may not write beside its sources compiles them at each start.
"$venv/bin/python" -m compileall -q -j 0 contract ipc supervisor frontend notary workers console bridge edge importing sdk/gateway_client contrib
