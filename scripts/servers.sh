#!/usr/bin/env bash
# Finds the servers that tests run for real, or fetches them: squid. Nothing is installed: the package would start a
# service, so its files are unpacked into FOLDER and run from there. Needs no root, and leaves the system's package
# lists alone. What stands already is used: the second run is quick.
# Usage: servers.sh FOLDER     afterwards FOLDER/bin/squid runs, unless a squid is on the PATH or in /usr/sbin
set -euo pipefail
folder=$(realpath -m "$1")

say() { printf '%s\n' "$*" >&2; }
runs() { "$1" -v >/dev/null 2>&1; }

PATH=$PATH:/usr/sbin:/usr/local/sbin
if found=$(command -v squid) && runs "$found"; then exit 0; fi
if [ -x "$folder/bin/squid" ] && runs "$folder/bin/squid"; then exit 0; fi

for tool in apt-get dpkg flock; do
  command -v "$tool" >/dev/null || {
    say "servers: no squid found, and no $tool to fetch it with; install the package squid (its service need not run)"
    exit 1; }
done

say "servers: fetching squid for the tests (not installed; some seconds, once)"
mkdir -p "$(dirname "$folder")"
# One at a time: what runs under somebody's tests is not replaced, and what a killed one left half made can go.
exec 9< "$(dirname "$folder")"
flock -w 900 9 || { say "servers: another fetch has not ended for a quarter of an hour"; exit 1; }
if [ -x "$folder/bin/squid" ] && runs "$folder/bin/squid"; then exit 0; fi
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
# What the system lacks of squid's dependencies comes along.
apt-get -c "$made/apt.conf" -qq -y --download-only install squid >&2 || {
  say "servers: squid could not be fetched; see what apt-get says above, or install the package squid and try again"
  exit 1; }

for package in "$made"/archives/*.deb; do
  case $(basename "$package") in
    libc6_* | libperl* | lib*-perl_*) ;; # the loader's own C library stays the system's; Perl is for what we leave out
    squid* | lib*) dpkg -x "$package" "$made/root" ;;
  esac
done
cat > "$made/bin/squid" <<'END'
#!/bin/sh
root=$(dirname "$(readlink -f "$0")")/../root
libraries=
for one in "$root"/usr/lib/*-linux-* "$root"/lib/*-linux-*; do
  [ ! -d "$one" ] || libraries=$libraries${libraries:+:}$one
done
export LD_LIBRARY_PATH="$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
exec "$root/usr/sbin/squid" "$@"
END
chmod 0755 "$made" "$made/bin/squid"
rm -rf "$made/lists" "$made/archives" "$made"/*.bin "$made/apt.conf"
runs "$made/bin/squid" || {
  say "servers: the squid that was fetched does not run here:"; "$made/bin/squid" -v >&2 || true
  say "servers: install the package squid (its service need not run) and try again"; exit 1; }
rm -rf "$folder"
mv -T "$made" "$folder"
