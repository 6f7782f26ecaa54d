#!/usr/bin/env bash
# Runs every test, in three processes at once that take about as long: on two cores some always waits. What the others
# say is told at the end.
# Usage: test.sh PYTHON
set -uo pipefail
python=$1
first=(tests/integration)
second=(tests/notary tests/faults tests/chaos tests/mutants tests/sdk tests/gatectl tests/systemd)

said=$(mktemp -d); trap 'rm -rf "$said"' EXIT
"$python" -m pytest -p no:cacheprovider "${second[@]}" >"$said/second" 2>&1 & pids=($!)
"$python" -m pytest -p no:cacheprovider "${first[@]/#/--ignore=}" "${second[@]/#/--ignore=}" tests >"$said/third" 2>&1 & pids+=($!)
"$python" -m pytest "${first[@]}"; worst=$?
for pid in "${pids[@]}"; do
  wait "$pid"; code=$?
  worst=$((code > worst ? code : worst))
done
cat "$said/second" "$said/third"
exit "$worst"
