#!/bin/sh
# Makes the configuration for the units of this folder where there is none: `gateway init --production`, and files that
# the gateway's user may read. Run as root, after the users are there. Usage: configure.sh [OPERATOR]
set -eu
# There from before the configuration until all owners are right: a run that ended between is gone on with.
begun=/etc/gateway/.configuring
if [ ! -e /etc/gateway/gateway.toml ]; then
  mkdir -p -m 0700 /etc/gateway
  touch "$begun"
  /opt/action-gateway/bin/gateway init --production /etc/gateway --operator "${1:-admin}"
elif [ ! -e "$begun" ]; then
  exit 0
fi
# The gateway reads configuration and actions and keeps grants in the policy; keys and secrets stay root's.
chown root:gateway /etc/gateway /etc/gateway/gateway.toml
chown -R root:gateway /etc/gateway/actions
chown -R gateway:gateway /etc/gateway/policy
chmod 0750 /etc/gateway /etc/gateway/actions
chmod 0640 /etc/gateway/gateway.toml /etc/gateway/actions/*
rm "$begun"
