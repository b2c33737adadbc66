#!/usr/bin/env bash
# Kills preloaded programs at all moments of their lives, with SIGKILL, while another preloaded
# program runs: that one, and the next ones to start, must not notice.
# usage: kill.sh LIBRARY PROGRAM
set -uo pipefail
library=$1 program=$2
wanted=$("$program") || exit 1
killed=0 failed=0

survive() {
    local printed
    printed=$(LD_PRELOAD=$library "$program" 2>&1)
    [[ $printed == "$wanted" ]] || { printf 'a survivor printed: %s\n' "$printed" && return 1; }
}

for delay in 0.00{1..9} 0.0{1..9} 0.{1..2}; do
    LD_PRELOAD=$library "$program" >/dev/null 2>&1 &
    victim=$!
    survive &
    survivor=$!
    sleep "$delay"
    kill -KILL $victim 2>/dev/null && killed=$((killed + 1))
    wait $victim 2>/dev/null
    wait $survivor || failed=1
    survive || failed=1
done
printf '%d killed\n' $killed
[[ $failed == 0 && $killed != 0 ]]
