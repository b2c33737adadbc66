#!/usr/bin/env bash
# Runs the ring example natively and preloaded, in each mode of free: same lines, and none of them
# with wrong bytes.
# usage: ring.sh LIBRARY PROGRAM MPIRUN PROCESSES
set -u
library=$(realpath "$1") program=$(realpath "$2") mpirun=$3 processes=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,tcp
export OMPI_MCA_plm_rsh_agent='' OMPI_MCA_btl_base_warn_component_unused=0
export OMPI_MCA_hwloc_base_binding_policy=none
export TMPDIR=$work

# ring OUTPUT MPIRUN-OPTION...
ring() {
    local output=$1
    shift
    timeout 60 "$mpirun" -n "$processes" "$@" "$program" >"$output" 2>"$output.err" || {
        cat "$output" "$output.err"
        exit 1
    }
    sort -o "$output" "$output"
}

ring "$work/native"
[ "$(grep -c ': 0 wrong bytes' "$work/native")" = "$processes" ] || {
    cat "$work/native"
    exit 1
}
for mode in sync lazy ordered; do
    ring "$work/preloaded" -x "LD_PRELOAD=$library" -x "BFC_FREE=$mode"
    diff "$work/native" "$work/preloaded" || exit 1
    ! grep '^bfcpreload:' "$work/preloaded.err" || exit 1
done
