#!/bin/sh
# The libraries' names and version nodes are those of the real ones. Arguments: libcuda, libcudart.
set -eu
fail() {
    echo "$1" >&2
    exit 1
}
readelf -d "$1" | grep -q 'SONAME.*\[libcuda\.so\.1\]' || fail "libcuda has another soname"
readelf -d "$2" | grep -q 'SONAME.*\[libcudart\.so\.13\]' || fail "libcudart has another soname"
readelf --dyn-syms -W "$2" | grep -q ' cudaMalloc@@libcudart\.so\.13' ||
    fail "cudaMalloc lacks the version node libcudart.so.13"
if readelf --dyn-syms -W "$2" | awk '$5 == "GLOBAL" && $7 != "UND" { print $8 }' |
    grep -v '^_*cuda\|^libcudart'; then
    fail "libcudart exports other names"
fi
if readelf --dyn-syms -W "$1" | awk '$5 == "GLOBAL" && $7 != "UND" { print $8 }' |
    grep -v '^cu[A-Z]\|^sim_'; then
    fail "libcuda exports other names"
fi
if readelf -d "$2" | grep 'NEEDED.*libcuda'; then
    fail "libcudart links the driver"
fi
