#!/usr/bin/env bash
# Runs the tests in three processes at once that take about as long (tests/support/shares.py divides them): many tests
# wait, and two processes would leave a quarter of two processors idle. The first is seen as it goes; the output of the
# others comes at the end.
# Usage: test.sh PYTHON fast|all     fast leaves out slow tests, and tries few examples of each property
set -uo pipefail
python=$1
export GATEWAY_TESTS=$2

said=$(mktemp -d); trap 'rm -rf "$said"' EXIT
running=()
for share in 2 3; do
    "$python" -m pytest -p tests.support.shares --share "$share/3" -p no:cacheprovider tests >"$said/$share" 2>&1 &
    running+=($!)
done
"$python" -m pytest -p tests.support.shares --share 1/3 tests; ended=$?
for other in "${running[@]}"; do
    wait "$other" || ended=$?
done
cat "$said"/*
exit "$ended"
