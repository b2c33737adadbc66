#!/usr/bin/env bash
# Instructions that the preload adds to the start of programs, counted by callgrind: at most 25,000 of
# its own, and a thirty-fifth of what the start costs without it, since the loader asks one library more
# for each symbol of the program.
# usage: startup.sh LIBRARY
set -eu
library=$(realpath "$1")
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
    most=$((25000 + without / 35))
    echo "$program: $without, $((with - without)) more preloaded, at most $most"
    [ $((with - without)) -le $most ] || failed=1
done
exit $failed
