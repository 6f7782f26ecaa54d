# Sourced by what builds providers: brings pinned tools into a folder, once for each lock file.

say() { printf 'providers: %s\n' "$*" >&2; }

need() { # PROGRAM HINT
  command -v "$1" >/dev/null || { say "$1 is needed ($2)"; exit 1; }
}

# One build at a time brings tools into FOLDER, which is made.
hold_tools() { # FOLDER
  mkdir -p "$1"
  exec 9<"$1"
  flock -w 1800 9 || { say "another build has been bringing tools into $1 for half an hour"; exit 1; }
}

# What a requirements file with hashes names, in a virtual environment.
bring_python() { # LOCK VENV
  cmp -s "$1" "$2/requirements.lock" && return
  say "bringing $(sed -n 's/^\([a-z][a-z0-9_-]*==[^ ]*\).*/\1/p' "$1" | paste -sd ' ') (once)"
  rm -rf "$2"
  "${PYTHON:-python3}" -m venv "$2"
  "$2/bin/python" -m pip install -q --disable-pip-version-check --only-binary :all: --require-hashes -r "$1"
  cp "$1" "$2/requirements.lock"
}

# What package.json and package-lock.json of FOLDER name. Runs no script of a package.
bring_npm() { # FOLDER INTO [OPTION…]
  local from=$1 into=$2
  shift 2
  need node "Node.js 20 or later; Debian: apt install nodejs npm"
  need npm "Node.js 20 or later; Debian: apt install nodejs npm"
  node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' || { say "Node.js $(node --version) is too old; 20 or later is needed"; exit 1; }
  cmp -s "$from/package-lock.json" "$into/installed-lock.json" && return
  say "bringing $(sed -n 's/.*"dependencies": { "\([^"]*\)": "\([^"]*\)".*/\1 \2/p' "$from/package.json") (once)"
  rm -rf "$into" && mkdir -p "$into"
  cp "$from/package.json" "$from/package-lock.json" "$into/"
  (cd "$into" && npm ci --ignore-scripts --no-audit --no-fund --no-update-notifier --loglevel=error "$@") >&2
  cp "$from/package-lock.json" "$into/installed-lock.json"
}
