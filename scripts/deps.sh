#!/bin/sh
# Installs what presk needs and the machine lacks, with apt-get, once; elsewhere says what to install.
packages="gcc make llvm-19-dev libjansson-dev libsqlite3-dev libunistring-dev libgmp-dev libmpfr-dev zlib1g-dev libcmocka-dev python3"
missing=""
if command -v dpkg-query >/dev/null 2>&1; then
  for p in $packages $*; do
    dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing="$missing $p"
  done
  [ -z "$missing" ] && exit 0
  sudo=""
  [ "$(id -u)" = 0 ] || sudo="sudo"
  echo "installing:$missing" >&2
  log=$(mktemp)
  if $sudo env DEBIAN_FRONTEND=noninteractive apt-get update >"$log" 2>&1 &&
     $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing >>"$log" 2>&1
  then rm -f "$log"; exit 0; fi
  tail -n 20 "$log" >&2
  echo "could not install:$missing (the log above says why)" >&2
  exit 1
fi
echo "this is not a Debian system; presk needs: a C11 compiler, make, LLVM 19 with its C API," >&2
echo "jansson, SQLite 3, libunistring, GMP, zlib; its tests also need cmocka, MPFR and Python 3." >&2
echo "If they are installed, go on with: touch build/deps.ok" >&2
exit 1
