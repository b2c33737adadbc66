#!/usr/bin/env bash
# What being preloaded costs a pair, over a driver that costs nothing: one line of JSON a mode.
# usage: run.sh LIBRARY PAIR
set -eu
"$2" native
for mode in sync lazy ordered; do
    BFC_FREE=$mode LD_PRELOAD=$1 "$2" $mode
    BFC_STATS=0 BFC_FREE=$mode LD_PRELOAD=$1 "$2" $mode-without-segment
done
