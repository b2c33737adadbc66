#!/usr/bin/env bash
# Over an old driver a program runs in any mode, and is told once that frees wait.
# usage: test.sh LIBRARY PAIR
set -u
for mode in lazy ordered; do
    said=$(BFC_FREE=$mode LD_PRELOAD=$1 "$2" $mode 1 2>&1 >/dev/null) || exit 1
    [ "$said" = 'bfcpreload: this driver is older than CUDA 12.5: BFC_FREE=sync is in force' ] ||
        { echo "$mode: $said" && exit 1; }
done
said=$(BFC_FREE=sync LD_PRELOAD=$1 "$2" sync 1 2>&1 >/dev/null) || exit 1
[ -z "$said" ] || { echo "sync: $said" && exit 1; }
