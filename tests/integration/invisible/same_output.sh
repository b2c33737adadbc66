#!/usr/bin/env bash
# Runs a program natively, and preloaded in each of the places that $PRELOADS names (a list of
# LD_PRELOAD values, by blanks, where OURS stands for our library; for comparison, each is also run
# with OURS left out): same output, same exit status.
# usage: same_output.sh LIBRARY PROGRAM [ARGUMENT…]
set -u
library=$(realpath "$1")
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

failed=0
for places in ${PRELOADS:-OURS}; do
    without=${places//OURS/}
    env LD_PRELOAD="${without//:/ }" "$@" >"$work/without" 2>&1
    status_without=$?
    env BFC_LOG=off LD_PRELOAD="${places//OURS/$library}" "$@" >"$work/with" 2>&1
    status_with=$?
    echo "LD_PRELOAD=$places: exit status $status_with, $(wc -l <"$work/with") lines"
    if [ $status_without != $status_with ] || ! cmp -s "$work/without" "$work/with"; then
        echo "without us the exit status is $status_without"
        diff "$work/without" "$work/with"
        failed=1
    fi
done
exit $failed
