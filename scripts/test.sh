#!/usr/bin/env bash
# Runs every test, in three processes at once that take about as long: many tests wait, and two processes would leave a
# quarter of two processors idle. One is seen as it goes; what the others say is told at the end.
# Usage: test.sh PYTHON
set -uo pipefail
python=$1
one=(tests/frontend tests/integration/test_[a-o]*.py)
folders=(tests/chaos tests/faults tests/gatectl tests/mutants tests/sdk tests/supervisor tests/systemd)
# All that the first one leaves, whatever its name.
two=("${folders[@]}" tests/integration --ignore-glob="tests/integration/test_[a-o]*.py")
elsewhere=(tests/frontend tests/integration "${folders[@]}")

said=$(mktemp -d); trap 'rm -rf "$said"' EXIT
"$python" -m pytest -p no:cacheprovider "${two[@]}" >"$said/two" 2>&1 & running=($!)
"$python" -m pytest -p no:cacheprovider "${elsewhere[@]/#/--ignore=}" tests >"$said/three" 2>&1 & running+=($!)
"$python" -m pytest "${one[@]}"; ended=$?
for other in "${running[@]}"; do
    wait "$other" || ended=$?
done
cat "$said"/*
exit "$ended"
