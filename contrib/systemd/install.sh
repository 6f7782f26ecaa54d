#!/bin/sh
# Installs the units of this folder, and makes configuration and users where there are none. Nothing is started, nothing
# that is there is written over but the units themselves. Run as root, after installing the gateway:
#   python3 -m venv /opt/action-gateway && /opt/action-gateway/bin/pip install .     # in a clone of the repository
# Usage: install.sh [OPERATOR]     the name of the first operator (default: admin)
set -eu
here=$(dirname "$(readlink -f "$0")")
gateway=/opt/action-gateway/bin/gateway
[ "$(id -u)" = 0 ] || { echo "install.sh: run this as root" >&2; exit 1; }
[ -x "$gateway" ] || { echo "install.sh: there is no $gateway; install the gateway first" >&2; exit 1; }

install -D -m 0644 "$here/sysusers.d/gateway.conf" /etc/sysusers.d/gateway.conf
install -D -m 0644 "$here/tmpfiles.d/gateway.conf" /etc/tmpfiles.d/gateway.conf
systemd-sysusers /etc/sysusers.d/gateway.conf
systemd-tmpfiles --create /etc/tmpfiles.d/gateway.conf

"$here/configure.sh" "$@"

for unit in gateway.service gateway.socket gateway-admin.socket gateway-metrics.socket gateway-edge.service; do
  install -m 0644 "$here/$unit" /etc/systemd/system/
done
install -D -m 0644 "$here/gateway.service.d/walls.conf" /etc/systemd/system/gateway.service.d/walls.conf
version=$(systemctl --version | sed -n '1s/[^0-9]*\([0-9]*\).*/\1/p')
if [ "$version" -ge 253 ]; then
  install -D -m 0644 "$here/gateway.service.d/notify-reload.conf" /etc/systemd/system/gateway.service.d/notify-reload.conf
fi
systemctl daemon-reload
echo "Installed. When gateway.toml says what you want: $here/check.sh, then"
echo "systemctl enable --now gateway.socket gateway-admin.socket gateway"
