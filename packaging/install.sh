#!/bin/sh
# Installs what this folder holds, or removes it again.
# usage: ./install.sh [--uninstall] [PREFIX]      PREFIX: /usr/local unless given
#
# All is copied beside its place first and put there when nothing can fail any more: a disk that is full
# or read-only leaves what was there before. The list of what was installed lets a later version, and
# --uninstall, remove what this one brought.
set -eu
umask 022
usage='usage: ./install.sh [--uninstall] [PREFIX]'
list=lib/bfcpreload/installed

fail() {
    echo "install.sh: $1" >&2
    exit "${2:-1}"
}

remove=''
[ "${1-}" != --uninstall ] || { remove=1 && shift; }
[ $# -le 1 ] || fail "one PREFIX at most, and --uninstall before it; $usage" 2
prefix=${1:-/usr/local}
case $prefix in
/*) ;;
*) fail "PREFIX must be an absolute path, not $prefix; $usage" 2 ;;
esac
case $prefix in
*[[:space:]:\$]*) fail "$prefix: LD_PRELOAD takes no path with blanks, colons or dollar signs" 2 ;;
*[\\\"\'%\|\&\;]*) fail "$prefix: systemd's unit takes no path with one of \\ \" ' % | & ;" 2 ;;
esac
CDPATH='' cd -- "$(dirname -- "$0")/files"

check_system() {
    lib/bfcpreload/bfcopts version >/dev/null 2>&1 ||
        fail "its programs do not run here: they need glibc 2.28 or later, the processor in the tarball's name, and to lie where programs may be run (not mounted noexec)"
}

# A package's files are the package's to replace and to remove.
check_owner() {
    program=$(realpath -m -- "$prefix/bin")/bfcrun # /bin may be a link to /usr/bin
    for asked in 'dpkg-query -S' 'rpm -qf'; do
        ! $asked "$program" >/dev/null 2>&1 ||
            fail "$program is from a package of this system: name another PREFIX, or remove the package"
    done
}

files() {
    find . -type f | sed 's|^\./||' | LC_ALL=C sort
}

# Not with the owner that it has here.
stage() {
    [ ! -d "$prefix/$1" ] || fail "$prefix/$1 is a folder, where a file is to be"
    mkdir -p -- "$prefix/$(dirname -- "$1")"
    rm -f -- "$prefix/$1.new"
    case $1 in
    *.service) sed "s|^ExecStart=[^ ]*|ExecStart=$prefix/bin/bfcstat|" "$1" >"$prefix/$1.new" ;;
    *) cp --preserve=mode,timestamps -- "$1" "$prefix/$1.new" ;;
    esac
}

stage_all() {
    files | while read -r file; do
        stage "$file"
    done
    rm -f -- "$prefix/$list.new"
    files >"$prefix/$list.new"
}

remove_staged() {
    files | while read -r file; do
        rm -f -- "$prefix/$file.new"
    done
    rm -f -- "$prefix/$list.new"
}

# What the installed version brought; names alone, whatever the list holds.
installed() {
    [ ! -f "$prefix/$list" ] || grep -v -e '^/' -e '^\.\.' -e '/\.\./' "$prefix/$list"
}

# Puts each in place of its former, which running programs may have mapped.
replace_all() {
    installed | while read -r file; do
        [ -f "$file" ] || rm -f -- "$prefix/$file"
    done
    { files && echo "$list"; } | while read -r file; do
        mv -fT -- "$prefix/$file.new" "$prefix/$file"
    done
}

remove_all() {
    { files && installed && echo "$list"; } | while read -r file; do
        [ -d "$prefix/$file" ] || rm -f -- "$prefix/$file"
    done
    find . -depth -type d -path '*/bfcpreload*' | while read -r folder; do
        rmdir -- "$prefix/$folder" 2>/dev/null || :
    done
}

if [ -n "$remove" ]; then
    check_owner
    remove_all
else
    check_system
    check_owner
    mkdir -p -- "$prefix"
    prefix=$(CDPATH='' cd -- "$prefix" && pwd) # without '..'
    trap remove_staged EXIT
    trap 'exit 1' HUP INT TERM
    stage_all
    replace_all
fi
