#!/bin/sh
# Turns PTX ($1) into a C header ($2) that defines it as the string kernels_ptx. As numbers, since
# C does not promise such long string literals.
set -eu
{
    echo '// Made from kernels.ptx by ptx_header.sh.'
    echo 'static const char kernels_ptx[] = {'
    od -An -v -td1 "$1" | sed 's/  *\([0-9-][0-9]*\)/\1,/g'
    echo '    0};'
} >"$2"
