#!/usr/bin/env bash
# Kills preloaded programs at all moments of their lives, with SIGKILL, while another preloaded
# program runs on the same device: that one, and the next ones to start, must not notice, and nothing
# of the dead may be left when the next one has started.
# usage: kill.sh LIBRARY PROGRAM...
set -uo pipefail
library=$1
shift
killed=0 failed=0 dead=()
SIM_SHARE=$(mktemp) || exit 1
export SIM_SHARE
trap 'rm -f "$SIM_SHARE"' EXIT

# survive PROGRAM WANTED
survive() {
    local printed
    # An out of memory is no harm while a killed process is not gone yet.
    printed=$(BFC_LOG=off LD_PRELOAD=$library "$1" 2>&1)
    [[ $printed == "$2" ]] || { printf 'a survivor printed: %s\n' "$printed" && return 1; }
}

# kill_at SECONDS PROGRAM WANTED
kill_at() {
    LD_PRELOAD=$library "$2" >/dev/null 2>&1 &
    victim=$!
    survive "$2" "$3" &
    survivor=$!
    sleep "$1"
    kill -KILL $victim 2>/dev/null && killed=$((killed + 1))
    wait $victim 2>/dev/null
    dead+=("$victim")
    wait $survivor || failed=1
}

for program; do
    wanted=$("$program") || exit 1
    for delay in 0.00{1..9} 0.0{1..9} 0.{1..2}; do
        kill_at "$delay" "$program" "$wanted"
    done
    survive "$program" "$wanted" || failed=1
done
for pid in "${dead[@]}"; do
    left=$(compgen -G "/dev/shm/bfcpreload*.$pid") && printf 'left behind: %s\n' "$left" && failed=1
done
printf '%d killed\n' $killed
[[ $failed == 0 && $killed != 0 ]]
