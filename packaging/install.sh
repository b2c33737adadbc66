#!/bin/sh
# Installs what this folder holds, or removes it again.
# usage: ./install.sh [--uninstall] [PREFIX]      PREFIX: /usr/local unless given
set -eu

remove=''
[ "${1-}" != --uninstall ] || { remove=1 && shift; }
prefix=${1:-/usr/local}
case $prefix in
/*) ;;
*) echo "install.sh: PREFIX must be an absolute path, not $prefix" >&2 && exit 2 ;;
esac
cd -- "$(dirname -- "$0")/files"

find . -type f | while read -r file; do
    if [ -n "$remove" ]; then
        rm -f -- "$prefix/$file"
    else
        mkdir -p -- "$prefix/$(dirname -- "$file")"
        cp -p -- "$file" "$prefix/$file"
    fi
done
unit=$prefix/lib/systemd/system/bfcstat.service
if [ -e "$unit" ]; then
    sed -i "s|^ExecStart=[^ ]*|ExecStart=$prefix/bin/bfcstat|" "$unit"
fi
