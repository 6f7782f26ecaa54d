#!/usr/bin/env bash
# Runs tests/support/quick.py's choice in two processes at once that take about as long; told when both have ended.
# Usage: quick.sh PYTHON
set -uo pipefail
python=$1
half=(tests/frontend tests/notary/backends tests/notary/ledger tests/notary/operations tests/notary/reading)
unused=(-p no:schemathesis -p no:anyio)  # plugins of tests that start gateways
# In memory, where there is some: most of these tests write a database.
PYTEST_DEBUG_TEMPROOT=$(test -w /dev/shm && echo /dev/shm || echo "${TMPDIR:-/tmp}"); export PYTEST_DEBUG_TEMPROOT

said=$(mktemp); trap 'rm -f "$said"' EXIT
"$python" -m pytest "${unused[@]}" -p tests.support.quick -p no:cacheprovider "${half[@]/#/--ignore=}" tests >"$said" 2>&1 & others=$!
"$python" -m pytest "${unused[@]}" -p tests.support.quick "${half[@]}"; one=$?
wait "$others"; other=$?
cat "$said"
exit $((one > other ? one : other))
