#!/bin/sh
# Installs what this folder holds, or removes it again.
# usage: ./install.sh [--uninstall] [PREFIX]      PREFIX: /usr/local unless given
set -eu
umask 022

remove=''
[ "${1-}" != --uninstall ] || { remove=1 && shift; }
prefix=${1:-/usr/local}
case $prefix in
/*) ;;
*) echo "install.sh: PREFIX must be an absolute path, not $prefix; usage: ./install.sh [--uninstall] [PREFIX]" >&2 && exit 2 ;;
esac
case $remove$prefix in
/*' '* | /*'	'* | /*:* | /*'$'*)
    echo "install.sh: $prefix: LD_PRELOAD takes no path with blanks, colons or dollar signs" >&2
    exit 2
    ;;
esac
cd -- "$(dirname -- "$0")/files"

if [ -z "$remove" ] && ! lib/bfcpreload/bfcopts version >/dev/null 2>&1; then
    echo "install.sh: its programs do not run here: they need glibc 2.28 or later, and the processor in the tarball's name" >&2
    exit 1
fi

find . -type f | while read -r file; do
    if [ -n "$remove" ]; then
        rm -f -- "$prefix/$file"
    else
        mkdir -p -- "$prefix/$(dirname -- "$file")"
        # Not over the file itself, which running programs may have mapped; nor with the owner that it has here.
        cp --preserve=mode,timestamps -- "$file" "$prefix/$file.new"
        mv -f -- "$prefix/$file.new" "$prefix/$file"
    fi
done
if [ -n "$remove" ]; then
    find . -depth -type d -path '*/bfcpreload*' | while read -r folder; do
        rmdir -- "$prefix/$folder" 2>/dev/null || :
    done
fi
unit=$prefix/lib/systemd/system/bfcstat.service
if [ -e "$unit" ]; then
    sed -i "s|^ExecStart=[^ ]*|ExecStart=$prefix/bin/bfcstat|" "$unit"
fi
