#!/bin/bash
# Boots a systemd as PID 1 of namespaces of its own, on a throw-away overlay of this machine's root, says `ready PID` (the
# PID of that systemd, as this machine sees it), and ends with its standard input. Nothing outside the overlay is
# written: /tmp, /run, /dev, network and control group are the box's own. Needs root, overlayfs and a writable cgroup2.
#
#   box.sh [HOST:BOX]...      read-only bind mounts of folders of this machine
#
# SYSTEMD_ROOT=DIR lays the files below DIR (another systemd, unpacked) over the root.
# A systemd must never be booted on a root that is in use: systemd-tmpfiles empties /tmp there.
set -euo pipefail
cgroups=/sys/fs/cgroup; [[ -f $cgroups/cgroup.procs ]] || cgroups=/sys/fs/cgroup/unified
group=$cgroups/gateway-box-$$; base=$(mktemp -d /var/tmp/gateway-box.XXXXXX)
mkdir -p "$group" "$base"/{rw,root}
outer=
clean_up() {
  set +e
  if [[ -n $outer ]]; then kill -KILL "$outer" 2>/dev/null; wait "$outer" 2>/dev/null; fi
  for _ in $(seq 100); do
    find "$group" -depth -type d -exec rmdir {} + 2>/dev/null
    [[ -d $group ]] || break
    sleep 0.1
  done
  rm -f "$base/log"; rmdir "$base/rw" "$base/root" "$base"
}
trap clean_up EXIT
trap 'exit 1' TERM INT HUP

# shellcheck disable=SC2016  # what stands in quotes is for the box's own shell
inside='
set -eu; base=$1 extra=$2; shift 2; root=$base/root
mount -t tmpfs tmpfs "$base/rw"; mkdir "$base/rw/upper" "$base/rw/work"
[ -z "$extra" ] || cp -a "$extra/." "$base/rw/upper/"
mount -t overlay overlay -o "lowerdir=/,upperdir=$base/rw/upper,workdir=$base/rw/work" "$root"
mount -t proc proc "$root/proc"
mount --bind "$root/proc/sys" "$root/proc/sys"; mount -o remount,bind,ro "$root/proc/sys"
mount -t sysfs -o ro sysfs "$root/sys"; mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755 tmpfs "$root/run"; mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for one in null zero full random urandom tty; do touch "$root/dev/$one"; mount --bind "/dev/$one" "$root/dev/$one"; done
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"; ln -s pts/ptmx "$root/dev/ptmx"
mount -t tmpfs tmpfs "$root/dev/shm"; ln -s /proc/self/fd "$root/dev/fd"; touch "$root/dev/console"
for one in "$@"; do
  mkdir -p "$root/${one#*:}"; mount --rbind "${one%%:*}" "$root/${one#*:}"; mount -o remount,bind,ro "$root/${one#*:}"
done
rm -rf "$root"/etc/systemd/system/*
for one in systemd-tmpfiles-setup.service systemd-tmpfiles-clean.timer systemd-sysctl.service systemd-udevd.service \
  systemd-modules-load.service systemd-remount-fs.service systemd-timesyncd.service apt-daily.timer \
  apt-daily-upgrade.timer; do ln -sf /dev/null "$root/etc/systemd/system/$one"; done
mkdir -p "$root/old"; cd "$root"; pivot_root . old; umount -l /old; cd /
mount --make-rshared /
hostname gateway-box; ip link set lo up 2>/dev/null || true
drop=-sys_time,-sys_module,-sys_rawio,-mknod,-sys_boot
exec setpriv --bounding-set "$drop" --inh-caps "$drop" env -i container=docker \
  PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
  /lib/systemd/systemd --system --unit=basic.target --log-target=journal --show-status=no
'
(
  echo "$BASHPID" >"$group/cgroup.procs"
  exec unshare --fork --kill-child --pid --mount --cgroup --uts --ipc --net --propagation private -- \
    bash -c "$inside" _ "$base" "${SYSTEMD_ROOT:-}" "$@" </dev/null >"$base/log" 2>&1
) &
outer=$!
inner=
for _ in $(seq 300); do
  inner=$(cat "/proc/$outer/task/$outer/children" 2>/dev/null | tr -d ' ' || true)
  [[ -n $inner && $(cat "/proc/$inner/comm" 2>/dev/null) == systemd ]] && break
  kill -0 "$outer" 2>/dev/null || { cat "$base/log" >&2; exit 3; }
  sleep 0.1
done
for _ in $(seq 300); do
  case $(nsenter -t "$inner" -a systemctl is-system-running 2>/dev/null) in running | degraded) break ;; esac
  sleep 0.1
done
echo "ready $inner"
cat >/dev/null
