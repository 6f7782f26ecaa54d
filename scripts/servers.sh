#!/usr/bin/env bash
# Finds the programs that tests run for real, or fetches them: squid, strace, redis-server, postgres and a Chromium.
# Nothing is installed: packages would start services, so files are unpacked into FOLDER and run from there. Needs no
# root, and leaves the system's package lists alone. What stands already is used, Chrome too: the second run is quick.
# The browser is the largest: 100 MB to fetch, 290 MB on the disk. What is written in Go is for go_programs.sh.
# Usage: servers.sh FOLDER     afterwards FOLDER/bin has each of them, unless it is on the PATH, in /usr/sbin or, of
# PostgreSQL, in /usr/lib/postgresql
set -euo pipefail
folder=$(realpath -m "$1")
declare -A version=([squid]=-v [strace]=-V [redis-server]=--version [postgres]=--version)
declare -A place=([squid]=usr/sbin [strace]=usr/bin [redis-server]=usr/bin [postgres]='usr/lib/postgresql/*/bin')
declare -A debian=([squid]=squid [strace]=strace [redis-server]=redis-server [postgres]=postgresql)
browsers=(chromium-headless-shell chromium google-chrome google-chrome-stable)
for one in "${browsers[@]}"; do version[$one]=--version; done
place[chromium-headless-shell]=usr/lib/chromium
debian[chromium-headless-shell]=chromium-headless-shell

say() { printf '%s\n' "$*" >&2; }
runs() { "$2" "${version[$1]}" >/dev/null 2>&1; }

PATH=$PATH:/usr/sbin:/usr/local/sbin
for one in /usr/lib/postgresql/*/bin; do [ ! -d "$one" ] || PATH=$PATH:$one; done

missing=()
for one in squid strace redis-server postgres; do
  { found=$(command -v "$one") && runs "$one" "$found"; } || missing+=("$one")
done
has_browser() {
  for one in "${browsers[@]}"; do { found=$(command -v "$one") && runs "$one" "$found"; } && return; done
  return 1
}
has_browser || missing+=("${browsers[0]}")
is_there() { for one in "${missing[@]}"; do [ -x "$folder/bin/$one" ] && runs "$one" "$folder/bin/$one" || return 1; done; }
if is_there; then exit 0; fi
packages=(); for one in "${missing[@]}"; do packages+=("${debian[$one]}"); done
names=${packages[*]}
names=${names// / and }

for tool in apt-get dpkg flock; do
  command -v "$tool" >/dev/null || {
    say "servers: no $names found, and no $tool to fetch it with; install the package $names (a service need not run)"
    exit 1; }
done

say "servers: fetching $names for the tests (not installed; half a minute, once)"
mkdir -p "$(dirname "$folder")"
# One at a time: what runs under somebody's tests is not replaced, and what a killed one left half made can go.
exec 9< "$(dirname "$folder")"
flock -w 900 9 || { say "servers: another fetch has not ended for a quarter of an hour"; exit 1; }
if is_there; then exit 0; fi
rm -rf "$folder".??????
made=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$made"' EXIT
mkdir -p "$made/lists/partial" "$made/archives/partial" "$made/root" "$made/bin"
cat > "$made/apt.conf" <<END
Dir::State::lists "$made/lists";
Dir::Cache "$made";
Dir::Cache::archives "$made/archives";
Debug::NoLocking "true";
APT::Sandbox::User "$(id -un)";
APT::Install-Recommends "false";
Acquire::Languages "none";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Acquire::Retries "3";
Acquire::http::Timeout "60";
Acquire::https::Timeout "60";
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
END
# A list that can't be had may be one that has no part in this.
apt-get -c "$made/apt.conf" -qq update >&2 || say "servers: not every package list could be had; going on without"
# The package postgresql only names one that holds it.
for at in "${!packages[@]}"; do
  [ "${packages[$at]}" != postgresql ] || packages[$at]=$(
    apt-cache -c "$made/apt.conf" depends postgresql | grep -oE 'postgresql-[0-9]+$' || echo postgresql)
done
# What the system lacks of their dependencies comes along. Again, where a package is there and its program is not found.
apt-get -c "$made/apt.conf" -qq -y --download-only --reinstall install "${packages[@]}" >&2 || {
  say "servers: $names could not be fetched; see what apt-get says above, or install the package $names and try again"
  exit 1; }

for package in "$made"/archives/*.deb; do
  case $(basename "$package") in
    libc6_* | libperl* | lib*-perl_*) ;; # the loader's own C library stays the system's; Perl is for what we leave out
    squid* | strace* | redis-* | postgresql-[0-9]* | postgresql-client-[0-9]* | chromium-* | lib*) dpkg -x "$package" "$made/root" ;;
  esac
done
for one in "${missing[@]}"; do
  cat > "$made/bin/$one" <<END
#!/bin/sh
root=\$(dirname "\$(readlink -f "\$0")")/../root
libraries=
for one in "\$root"/usr/lib/*-linux-* "\$root"/lib/*-linux-* "\$root"/usr/lib/*-linux-*/pulseaudio; do
  [ ! -d "\$one" ] || libraries=\$libraries\${libraries:+:}\$one
done
export LD_LIBRARY_PATH="\$libraries\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}"
for one in "\$root"/${place[$one]}/$one; do exec "\$one" "\$@"; done
END
  chmod 0755 "$made/bin/$one"
done
chmod 0755 "$made"
rm -rf "$made/lists" "$made/archives" "$made"/*.bin "$made/apt.conf"
for one in "${missing[@]}"; do
  runs "$one" "$made/bin/$one" || {
    say "servers: the $one that was fetched does not run here:"
    "$made/bin/$one" "${version[$one]}" >&2 || true
    say "servers: install the package ${debian[$one]} (a service need not run) and try again"; exit 1; }
done
rm -rf "$folder"
mv -T "$made" "$folder"
