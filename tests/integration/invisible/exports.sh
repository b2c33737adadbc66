#!/usr/bin/env bash
# The library exports what the list says, needs libc alone, no version of it above glibc 2.31's, and little
# static thread-local storage.
# usage: exports.sh LIBRARY LIST
set -eu
library=$1 list=$2
failed=0

complain() {
    echo "$*"
    failed=1
}

if ! exported=$(nm -D --defined-only --extern-only "$library"); then
    exit 1
fi
# Version nodes are absolute symbols, not functions.
diff <(grep -v '^#' "$list" | LC_ALL=C sort) <(awk '$2 != "A" { print $3 }' <<<"$exported" | LC_ALL=C sort) ||
    complain 'the exports are not those of the list (<: only there, >: only in the library)'

# A hook must be hidden from dlsym, and have our own version or a CUDA runtime's; what start files call is
# alone in the first version, which references without a version are bound to; the dl functions must have
# no version at all; our own interface is there to be found, and what NVTX looks up in an injection.
grep -q '@@' <<<"$exported" && complain 'an export has a default version: dlsym would find it'
awk '$2 != "A" && $3 !~ /^(dlsym|dlvsym|dlopen)$/ && $3 !~ /^bfc_/ && $3 != "InitializeInjectionNvtx2" && $3 != "__gmon_start__@BFC_START" && $3 !~ /@BFC_BOUND$/ && $3 !~ /@libcudart\.so\.[0-9]+$/ { print $3; bad = 1 }
     END { exit bad }' <<<"$exported" || complain 'these are not hidden from dlsym'

first=$(readelf -VW "$library" | sed -n 's/.*Index: 2 .*Name: \(.*\)/\1/p')
[ "$first" = BFC_START ] || complain "references without a version are bound to those of $first"

needed=$(readelf -dW "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
[ "$needed" = libc.so.6 ] || complain "needed libraries are not libc.so.6 alone: $needed"

highest=$(nm -D --undefined-only "$library" | sed -n 's/.*@GLIBC_\([0-9.]*\)$/\1/p' | sort -V | tail -n 1)
echo "highest version needed of glibc: $highest"
[ "$(printf '%s\n2.31\n' "$highest" | sort -V | tail -n 1)" = 2.31 ] ||
    complain 'glibc 2.31 does not have these:' \
        "$(nm -D --undefined-only "$library" | grep -E 'GLIBC_2\.(3[2-9]|[4-9][0-9])')"

# NVTX loads the library with dlopen where it is not preloaded. Then its thread-local variables, which are of
# the initial-exec model, must fit into what glibc keeps free for such libraries: with glibc 2.36 1665 bytes did,
# 1745 did not.
local=$((0x$(readelf -lW "$library" | awk '$1 == "TLS" { print substr($6, 3) }')))
[ "$local" -le 1664 ] || complain "thread-local variables take $local bytes, more than 1664"
exit $failed
