#!/usr/bin/env bash
# Runs every test, in two processes at once that take about as long; what the second one says is told at the end.
# Usage: test.sh PYTHON
set -uo pipefail
python=$1
half=(tests/integration tests/chaos tests/gatectl tests/sdk tests/systemd tests/faults tests/mutants tests/supervisor)

said=$(mktemp); trap 'rm -f "$said"' EXIT
"$python" -m pytest -p no:cacheprovider "${half[@]/#/--ignore=}" tests >"$said" 2>&1 & others=$!
"$python" -m pytest "${half[@]}"; one=$?
wait "$others"; other=$?
cat "$said"
exit $((one > other ? one : other))
