#!/usr/bin/env bash
# Builds the library, the stand-in driver and route programs for AArch64 with Debian's compiler, and runs
# them under qemu, natively and preloaded: the same output, and few driver allocations.
# usage: aarch64.sh SOURCE_ROOT CUDA_INCLUDE VERSION
set -u
root=$1 cuda=$2 version=$3
compiler=aarch64-linux-gnu-gcc
skip() { echo "$1" && exit 77; }
command -v $compiler >/dev/null || skip "no $compiler here (Debian: gcc-aarch64-linux-gnu libc6-dev-arm64-cross)"
qemu=$(command -v qemu-aarch64 || command -v qemu-aarch64-static) || skip 'no qemu-aarch64 here (Debian: qemu-user)'
libraries=$(dirname "$(dirname "$($compiler -print-file-name=libc.so.6)")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$root" || exit 1

fail() { echo "$*" && exit 1; }
flags=(-std=c17 -O1 -fPIC -D_GNU_SOURCE "-DBFC_VERSION=\"$version\"" -I. -isystem "$cuda" -fvisibility=hidden)
sim=(-D__CUDA_API_VERSION_INTERNAL -D__CUDA_API_PUSH_VISIBILITY_DEFAULT)
mkdir "$work/sim" "$work/bin"
# As sim/meson.build builds it; the source files of a room are all of one library.
$compiler "${flags[@]}" "${sim[@]}" -shared -pthread -Wl,-soname,libcuda.so.1 -Wl,-Bsymbolic \
    -Wl,-z,nodelete sim/{base,device,memory,graph,order,border,calls/*}/*.c -o "$work/sim/libcuda.so.1" ||
    fail 'the stand-in driver does not build'
$compiler "${flags[@]}" -shared -pthread -Wl,--version-script=interpose/entry/symbols.map \
    -Wl,-z,nodelete,-z,lazy,-z,relro,-z,start-stop-visibility=hidden interpose/*/*.c interpose/features/*/*.c interpose/features/*/*/*.c \
    interpose/entry/thunk_aarch64.S interpose/features/gate/table_stubs_aarch64.S segment/*.c pool/*/*.c base/*.c \
    -o "$work/libbfcpreload.so" || fail 'the library does not build'
ln -s libcuda.so.1 "$work/sim/libcuda.so"
for program in driver_linked by_name host; do
    $compiler "${flags[@]}" tests/integration/routes/$program.c tests/integration/routes/route.c -L"$work/sim" -Wl,--as-needed \
        -lcuda -o "$work/bin/$program" || fail "$program does not build"
done
$compiler "${flags[@]}" -fvisibility=default -shared tests/integration/routes/plugin.c tests/integration/routes/route.c \
    -o "$work/bin/plugin.so" || fail 'the plug-in does not build'
tests/integration/wranglers/names.py interpose/entry/symbols.list >"$work/wrangled_names.h" || fail 'names.py fails'
$compiler "${flags[@]}" -DBOUND_PROGRAM tests/integration/bound/bound.c tests/integration/routes/route.c -L"$work/sim" -lcuda \
    -o "$work/bin/bound" || fail 'bound does not build'
for source in bound/bound wranglers/wrangler; do
    $compiler "${flags[@]}" -I"$work" -fvisibility=default -shared "tests/integration/$source.c" tests/integration/routes/route.c \
        -L"$work/sim" -Wl,-z,lazy -Wl,--as-needed -lcuda -o "$work/bin/${source#*/}.so" || fail "$source does not build"
done

$compiler "${flags[@]}" -DKERNELS_PTX="\"$root/sim/kernels.ptx\"" tests/integration/gate/tables.c -L"$work/sim" -lcuda -o "$work/bin/tables" ||
    fail 'tables does not build'

# run NAME PRELOAD COMMAND...: SIM_STATS goes beside the output.
run() {
    "$qemu" -L "$libraries" -E LD_LIBRARY_PATH="$work/sim" -E BFC_LOG=off -E SIM_MEMORY=256M -E BFC_FREE="$mode" -E SIM_STATS="$work/$1.stats" \
        ${2:+-E LD_PRELOAD="$2"} "${@:3}" >"$work/$1" 2>&1
}

failed=0
while read -r -a command; do
    rm -f "$work"/*.stats
    mode=sync
    [ "${command[0]}" != tables ] || mode=lazy # with the gate
    run native '' "$work/bin/${command[0]}" "${command[@]:1}"
    native=$?
    run preloaded "$work/libbfcpreload.so" "$work/bin/${command[0]}" "${command[@]:1}"
    preloaded=$?
    made=$(sed -n 's/.*"cuMemAlloc": \([0-9]*\).*/\1/p' "$work/preloaded.stats" 2>/dev/null | tail -n 1)
    echo "${command[*]##*/}: exit status $native natively, $preloaded preloaded, ${made:-no} driver allocations"
    if [ "$native" != 0 ] || [ "$preloaded" != 0 ] || ! cmp "$work/native" "$work/preloaded" ||
        [ "${made:-999}" -gt 20 ]; then
        diff "$work/native" "$work/preloaded" | head -n 20
        failed=1
    fi
done <<END
driver_linked
by_name handle
by_name default
by_name process
by_name versioned
host $work/bin/plugin.so handle
host $work/bin/plugin.so handle deepbind
bound calls
bound constants
bound constructed
host $work/bin/bound.so calls
host $work/bin/bound.so constants
host $work/bin/bound.so constructed
host $work/bin/wrangler.so plug-in
tables second
tables jump
END
exit $failed
