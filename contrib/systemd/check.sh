#!/bin/sh
# `gateway check` as the service sees it: as its user, with its credentials and the settings of its unit. Starts and
# changes nothing. Run as root. Usage: check.sh [ARGUMENTS OF gateway check]
set -eu
unit=$(systemctl show --value -p FragmentPath gateway.service)
set -- /opt/action-gateway/bin/gateway check --config /etc/gateway/gateway.toml "$@"
for one in $(sed -n 's/^LoadCredential=//p' "$unit"); do set -- -p "LoadCredential=$one" "$@"; done
# shellcheck disable=SC2016  # the gateway itself knows the folder of its credentials
for one in $(sed -n 's/^Environment=\(GATEWAY__.*\)/\1/p' "$unit" | sed 's#%d#${CREDENTIALS_DIRECTORY}#; s#%S#/var/lib#'); do
  set -- -E "$one" "$@"
done
exec systemd-run --quiet --pipe --wait --collect -p User=gateway -p Group=gateway -p UMask=0077 "$@"
