/*
 * A thread's Python functions, read where CPython has them, without the GIL.
 *
 * Most programs release the GIL around CUDA's calls (PyTorch, Numba, ctypes). The calling thread's
 * own chain of frames stands still meanwhile, and keeps alive all that it refers to. Where the
 * parts of it lie differs from version to version; within one they do not move. Only versions that
 * were tried are known (docs/who.md). Thread-safe; changes nothing in the interpreter.
 */
#ifndef BFC_INTERPOSE_PYTHON_LAYOUT_H
#define BFC_INTERPOSE_PYTHON_LAYOUT_H

#include "interpose/features/who/stacks/python_visit.h"

struct bfc_python_layout;

/* By Py_GetVersion's text; NULL: not known. */
const struct bfc_python_layout *bfc_python_layout_find(const char *version);

/*
 * `thread`: the calling thread's own state. `code_type`: PyCode_Type. `line_of`: PyCode_Addr2Line,
 * which only reads.
 */
void bfc_python_layout_walk(const struct bfc_python_layout *layout, const void *thread,
                            const void *code_type, int (*line_of)(void *code, int offset),
                            bfc_python_visit *visit, void *context);

#endif
