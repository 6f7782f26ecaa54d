#!/bin/sh
# A command of `gateway` as the service sees it: as its user, with its credentials and the settings of its unit, which
# neither root nor that user alone has. Run as root, paths from / on. Usage: as-service.sh COMMAND [ARGUMENTS]
set -eu
unit=$(systemctl show --value -p FragmentPath gateway.service)
set -- /opt/action-gateway/bin/gateway "$@" --config /etc/gateway/gateway.toml
for one in $(sed -n 's/^LoadCredential=//p' "$unit"); do set -- -p "LoadCredential=$one" "$@"; done
# shellcheck disable=SC2016  # the gateway itself knows the folder of its credentials
for one in $(sed -n 's/^Environment=\(GATEWAY__.*\)/\1/p' "$unit" | sed 's#%d#${CREDENTIALS_DIRECTORY}#; s#%S#/var/lib#'); do
  set -- -E "$one" "$@"
done
exec systemd-run --quiet --pipe --wait --collect -p User=gateway -p Group=gateway -p UMask=0077 "$@"
