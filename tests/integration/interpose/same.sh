#!/usr/bin/env bash
# Runs a program natively and preloaded: same output, same exit status, nothing left in /dev/shm, and
# (unless the second argument is 0) at most that many driver allocations.
# usage: same.sh LIBRARY MOST_DRIVER_ALLOCATIONS PROGRAM [ARGUMENT…]
set -u
library=$(realpath "$1") most=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$@" >"$work/native" 2>&1
native=$?
# A full device is explained on standard error, which is no part of the program's output.
SIM_STATS=$work/stats BFC_LOG=off LD_PRELOAD=$library "$@" >"$work/preloaded" 2>&1
preloaded=$?
if [ $native != $preloaded ] || ! cmp -s "$work/native" "$work/preloaded"; then
    echo "exit status natively $native, preloaded $preloaded"
    diff "$work/native" "$work/preloaded"
    exit 1
fi
if [ "$native" != 0 ]; then
    echo "the program failed in both:"
    cat "$work/native"
    exit 1
fi
if [ "$most" != 0 ]; then
    made=$(sed -n 's/.*"cuMemAlloc": \([0-9]*\).*/\1/p' "$work/stats" | tail -n 1)
    echo "driver allocations: $made, at most $most expected"
    [ "$made" -le "$most" ] || exit 1
fi
