/*
 * Lists the Python functions that the calling thread is executing (CPython 3.9 and later).
 *
 * CPython's functions are looked up in the objects that were loaded at the process's start, and in
 * those that appear in call stacks. If the layout of the interpreter's structures is known for its
 * version, the structures are read. Otherwise the public C interface is called
 * (docs.python.org/3/c-api/frame.html), but only while the thread holds the GIL and no exception is
 * set. Python's garbage collector is disabled during these calls (possible from 3.10 on), so that
 * no code of the program runs. Nothing is done while the interpreter starts or ends. Thread-safe.
 */
#ifndef BFC_INTERPOSE_PYTHON_H
#define BFC_INTERPOSE_PYTHON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Called for each Python function that a thread is executing, innermost first. The texts are valid
 * during the call only. Returns false to end the walk. */
typedef bool bfc_python_visit(void *context, const char *function, const char *file, int line);

/* Calls `visit` for each Python function that the calling thread is executing. `calls` is the
 * thread's native call stack, of `count` calls. */
void bfc_walk_python(const uint64_t *calls, size_t count, bfc_python_visit *visit, void *context);

#endif
