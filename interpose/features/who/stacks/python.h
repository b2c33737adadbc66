/*
 * The Python functions that the calling thread is in, where the process runs CPython 3.9 or later.
 *
 * CPython's functions are looked up in what the process began with, and in the objects that its
 * threads' stacks lead through. Where the version's structures are
 * known they are read (python_layout.h). Else the public C interface is called
 * (docs.python.org/3/c-api/frame.html), but only while the thread holds the GIL and no exception is
 * set; the collector of garbage is held off meanwhile where the interpreter allows that (3.10), so
 * that no code of the program runs. Nothing is looked at while the interpreter begins or ends.
 * Thread-safe.
 */
#ifndef BFC_INTERPOSE_PYTHON_H
#define BFC_INTERPOSE_PYTHON_H

#include <stddef.h>
#include <stdint.h>

#include "interpose/features/who/stacks/python_visit.h"

/* Calls `visit` for each function that the thread is in, whose native stack is `calls`. */
void bfc_walk_python(const uint64_t *calls, size_t count, bfc_python_visit *visit, void *context);

#endif
