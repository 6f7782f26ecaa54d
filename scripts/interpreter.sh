#!/usr/bin/env bash
# Prints the Python that the virtual environment is built with: PYTHON where it is set. Otherwise the first python3 of
# the PATH that is 3.11 or later, can make virtual environments and was built with profile-guided optimisation or LTO,
# which makes the gateway 3 to 11 % cheaper; then the first that can make them; then the first.
# Usage: interpreter.sh     says on standard error which it took
set -euo pipefail

say() { printf 'setup: %s\n' "$*" >&2; }

# Debian and Ubuntu build theirs so, and remove the flags that would show it; they alone have the scheme deb_system.
question='
import sys, sysconfig
flags = " ".join(str(sysconfig.get_config_var(name)) for name in ("CONFIG_ARGS", "PY_CFLAGS", "PY_CORE_CFLAGS"))
signs = "--enable-optimizations", "--with-lto", "-fprofile-use", "-flto"
built = any(sign in flags for sign in signs) or "deb_system" in sysconfig.get_scheme_names()
try:
    import ensurepip, venv
except ImportError:
    venv = None
words = ["old" if sys.version_info < (3, 11) else "new", "optimised" if built else "plain", "venv" if venv else "bare"]
print(*words, "%d.%d.%d" % sys.version_info[:3])
'

if [ -n "${PYTHON:-}" ]; then
  command -v "$PYTHON" >/dev/null || { say "no $PYTHON found; install Python 3.11 or later"; exit 1; }
  "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    say "$("$PYTHON" --version) is too old; Python 3.11 or later is needed (PYTHON=/path/to/python make …)"; exit 1; }
  printf '%s\n' "$PYTHON"
  exit 0
fi

best='' best_rank=0 best_answer='' too_old='' passed=''
while read -r python; do
  answer=$("$python" -c "$question" </dev/null 2>/dev/null) || continue
  case $answer in
    old*) too_old=${too_old:-$answer}; continue ;;
    "new optimised venv"*) rank=3 ;;
    "new plain venv"*) rank=2 ;;
    *) rank=1 ;;
  esac
  case $answer in *optimised\ bare*) passed=${passed:-$python} ;; esac
  if [ $rank -gt $best_rank ]; then best=$python best_rank=$rank best_answer=$answer; fi
done < <(type -aP python3)

if [ -z "$best" ]; then
  [ -z "$too_old" ] || { say "Python ${too_old##* } is too old; Python 3.11 or later is needed (PYTHON=/path/to/python make …)"; exit 1; }
  say "no python3 found; install Python 3.11 or later"; exit 1
fi
case $best_rank in
  3) say "taking $best (Python ${best_answer##* }, an optimised build)" ;;
  2) say "taking $best (Python ${best_answer##* }, built without optimisation)"
     [ -z "$passed" ] || say "$passed is an optimised build, but comes without venv and ensurepip: install its venv package to use it" ;;
  *) say "taking $best (Python ${best_answer##* })" ;;
esac
printf '%s\n' "$best"
