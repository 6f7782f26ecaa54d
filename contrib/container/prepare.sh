#!/bin/sh
# Makes the folders and the Redis password of contrib/container/compose.yaml below ./data, owned by the users of its
# containers. What is there is left as it is. Run as root, in the folder of compose.yaml.
# Usage: prepare.sh [FOLDER]     FOLDER instead of ./data
set -eu
data=${1:-data}
gateway=10001 redis=10002
[ "$(id -u)" = 0 ] || { echo "prepare.sh: run this as root: folders are for other users" >&2; exit 1; }

install -d -o 0 -g 0 -m 0755 "$data"
install -d -o $gateway -g $gateway -m 0700 "$data/etc" "$data/state" "$data/opa" "$data/opa-socket"
install -d -o $redis -g $redis -m 0700 "$data/redis"
install -d -o $redis -g $gateway -m 0750 "$data/redis-socket"
# Whoever may pass may open the agents' socket if it has the group; who it is the kernel tells.
install -d -o $gateway -g $gateway -m 0755 "$data/run" "$data/egress"

# SECURITY: a folder's owner may have put links into it, which root must not follow: what goes there is made beside it.
inside() { [ -d "$2" ] || mkdir -m 0700 "$2"; chown -h "$1:$1" "$2"; }
put() { new=$(mktemp "$data/new.XXXXXX"); cat > "$new"; chown "$1:$1" "$new"; mv -fT "$new" "$2"; }
inside $gateway "$data/etc/policy"
inside $redis "$data/redis/data"

password=$data/etc/redis-password
[ -e "$password" ] || od -An -N32 -tx1 /dev/urandom | tr -d ' \n' | put $gateway "$password"
# Redis keeps the hash; the rights are those of docs/operations.md, "Redis".
digest=$(tr -d '\n' < "$password" | sha256sum | cut -d ' ' -f 1)
rights='+@read +@write +@scripting -@dangerous +ping +role +info +config|get +client|setname +select'
printf 'user default off\nuser gate on #%s ~{gateway}:* %s\n' "$digest" "$rights" | put $redis "$data/redis/users.acl"
echo "$data is ready; next: docs/deployment.md, \"Containers\""
