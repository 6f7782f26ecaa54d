#!/bin/sh
# `gateway check` as the service sees it. Starts and changes nothing. Run as root. Usage: check.sh [ARGUMENTS OF gateway check]
set -eu
exec "$(dirname "$(readlink -f "$0")")/as-service.sh" check "$@"
