#!/usr/bin/env bash
# Instructions that the preload adds to the start of programs: at most 40,000, counted by callgrind.
# usage: startup.sh LIBRARY
set -eu
library=$(realpath "$1")
most=40000
command -v valgrind >/dev/null || { echo 'no valgrind here' && exit 77; }
export LC_ALL=C PYTHONHASHSEED=0

# count PRELOAD COMMAND...: the least of three: address randomisation moves the count a little.
count() {
    for _ in 1 2 3; do
        LD_PRELOAD=$1 valgrind --tool=callgrind --callgrind-out-file=/dev/null "${@:2}" 2>&1 |
            sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
    done | sort -n | head -n 1
}

failed=0
for program in 'true' 'bash --norc -c :' 'git --version' 'gcc --version'; do
    read -r -a command <<<"$program"
    command[0]=$(command -v "/usr/bin/${command[0]}" || command -v "/bin/${command[0]}") || continue
    without=$(count "" "${command[@]}")
    with=$(count "$library" "${command[@]}")
    echo "$program: $without, $((with - without)) more preloaded"
    [ $((with - without)) -le $most ] || failed=1
done
exit $failed
