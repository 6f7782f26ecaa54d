#!/bin/sh
# A command of `gateway` as the service sees it: as its user, with its credentials and the settings of its unit, which
# neither root nor that user alone has. Run as root, paths from / on. Usage: as-service.sh COMMAND [ARGUMENTS]
set -eu
# The unit with its drop-ins, as systemd reads them: an empty value takes back what came before. The last comes
# first, since each is put before the others.
unit=$(systemctl cat gateway.service)
values() {
  printf '%s\n' "$unit" | awk -v name="$1=" 'index($0, name) == 1 { value = substr($0, length(name) + 1)
    if (value == "") count = 0; else all[++count] = value }
    END { while (count) print all[count--] }'
}
set -- /opt/action-gateway/bin/gateway "$@" --config /etc/gateway/gateway.toml
for kind in LoadCredential LoadCredentialEncrypted; do
  for one in $(values "$kind"); do set -- -p "$kind=$one" "$@"; done
done
# shellcheck disable=SC2016  # the gateway itself knows the folder of its credentials
for one in $(values Environment | grep '^GATEWAY__' | sed 's#%d#${CREDENTIALS_DIRECTORY}#; s#%S#/var/lib#'); do
  set -- -E "$one" "$@"
done
exec systemd-run --quiet --pipe --wait --collect -p User=gateway -p Group=gateway -p UMask=0077 "$@"
