#!/usr/bin/env bash
# Builds a package for Debian 12 of a release: the wheels of gateway and gatectl and the libraries of their lock files,
# each checked by its hash, in an environment of Debian's own Python below /usr/lib/action-gateway; units, man pages and
# completion. Where dpkg-deb or that Python is missing the package is left out, and that is said.
# Usage: deb.sh PYTHON TREE FOLDER VERSION     FOLDER has the wheels, and afterwards action-gateway_VERSION_MACHINE.deb
set -euo pipefail
python=$1 tree=$2 folder=$3 version=$4
system=/usr/bin/python3.11 home=/usr/lib/action-gateway

say() { printf 'release: %s\n' "$*" >&2; }
if [ ! -x "$system" ] || ! command -v dpkg-deb >/dev/null; then
  say "no dpkg-deb or no $system here: the Debian package is left out"
  exit 0
fi
say "building the Debian package"
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
root=$work/root
umask 022

env -u PYTHONPATH "$system" -m venv --without-pip "$root$home"
bring() { "$python" -m pip --python "$root$home/bin/python" install --no-compile "$@"; }
{
  bring --require-hashes -r "$tree/requirements.lock" -r "$tree/sdk/requirements.lock" &&
  bring --no-deps --no-index "$folder"/action_gateway{,_client}-*.whl &&
  "$python" -m pip --python "$root$home/bin/python" check
} >"$work/said" 2>&1 || { cat "$work/said" >&2; exit 1; }
# The environment was made elsewhere than it will lie: the two scripts that stay name their interpreter.
find "$root$home/bin" -type f ! -name gateway ! -name gatectl -delete
sed -i "1s|^#!$root|#!|" "$root$home/bin/gateway" "$root$home/bin/gatectl"
sed -i '/^command = /d' "$root$home/pyvenv.cfg"
find "$root$home" \( -name direct_url.json -o -name INSTALLER -o -name REQUESTED -o -name __pycache__ \) -exec rm -rf {} +
"$root$home/bin/python" -m compileall -q -s "$root" --invalidation-mode unchecked-hash "$root$home/lib"
mkdir -p "$root/usr/bin"
for program in gateway gatectl; do ln -s "../lib/action-gateway/bin/$program" "$root/usr/bin/$program"; done

units=$root/lib/systemd/system
for unit in "$tree"/contrib/systemd/*.service "$tree"/contrib/systemd/*.socket; do
  install -D -m 0644 "$unit" "$units/${unit##*/}"
  sed -i "s|/opt/action-gateway|$home|g" "$units/${unit##*/}"
done
# Debian 12 has systemd 252: notify-reload.conf is for 253.
install -D -m 0644 "$tree/contrib/systemd/gateway.service.d/walls.conf" "$units/gateway.service.d/walls.conf"
for script in configure.sh check.sh as-service.sh; do
  install -D -m 0755 "$tree/contrib/systemd/$script" "$root/usr/share/action-gateway/$script"
  sed -i "s|/opt/action-gateway|$home|g" "$root/usr/share/action-gateway/$script"
done
for kind in sysusers.d tmpfiles.d; do
  install -D -m 0644 "$tree/contrib/systemd/$kind/gateway.conf" "$root/usr/lib/$kind/gateway.conf"
done

(cd "$tree" && PYTHONPATH=sdk "$python" -m scripts.man_pages "$root/usr/share/man/man1")
gzip -9n "$root"/usr/share/man/man1/*.1
mkdir -p "$root"/usr/share/{bash-completion/completions,fish/vendor_completions.d}
complete() { # PROGRAM COMMAND...
  "${@:2}" completion bash > "$root/usr/share/bash-completion/completions/$1"
  "${@:2}" completion fish > "$root/usr/share/fish/vendor_completions.d/$1.fish"
}
complete gateway "$python" -I "$tree/launch.py" supervisor.cli
complete gatectl "$root$home/bin/python" -I -c 'from gateway_client.cli.main import main; main()'
install -D -m 0644 "$tree/LICENSE" "$root/usr/share/doc/action-gateway/copyright"
gzip -9nc "$tree/CHANGELOG.md" > "$root/usr/share/doc/action-gateway/changelog.gz"

mkdir "$root/DEBIAN"
architecture=$(dpkg --print-architecture)
sed -e "s|@VERSION@|$version|" -e "s|@ARCHITECTURE@|$architecture|" -e "s|@SIZE@|$(du -sk "$root" | cut -f1)|" \
  "$tree/contrib/debian/control.in" > "$root/DEBIAN/control"
install -m 0755 "$tree"/contrib/debian/{postinst,prerm,postrm} "$root/DEBIAN/"
# The same commit gives the same bytes, as far as the libraries' own wheels do.
find "$root" -exec touch -h -d "@${SOURCE_DATE_EPOCH:-0}" {} +
(cd "$root" && find . -type f ! -path './DEBIAN/*' -printf '%P\0' | sort -z | xargs -0 md5sum > DEBIAN/md5sums)
touch -d "@${SOURCE_DATE_EPOCH:-0}" "$root"/DEBIAN/* "$root/DEBIAN"
dpkg-deb --root-owner-group -Zzstd -z9 --build "$root" "$folder/action-gateway_${version}_$architecture.deb" >"$work/said" 2>&1 || {
  cat "$work/said" >&2; exit 1; }
