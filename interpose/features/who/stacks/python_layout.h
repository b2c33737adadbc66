/*
 * Reads a thread's Python functions from CPython's own structures, without the GIL.
 *
 * Most programs release the GIL around CUDA's calls (PyTorch, Numba, ctypes). The calling thread's
 * own chain of frames does not change meanwhile, and it keeps all objects alive to which it refers.
 * The offsets differ between versions (3.11, 3.12, …), but are the same in all releases of one.
 * Only tested versions are listed (docs/who.md). Thread-safe; changes nothing in the interpreter.
 */
#ifndef BFC_INTERPOSE_PYTHON_LAYOUT_H
#define BFC_INTERPOSE_PYTHON_LAYOUT_H

#include <stdbool.h>

struct bfc_python_layout;

/* Called for each Python function that a thread is executing, innermost first. The texts are valid
 * during the call only. Returns false to end the walk. */
typedef bool bfc_python_visit(void *context, const char *function, const char *file, int line);

/* Returns the layout for what Py_GetVersion returns; NULL if it is not known. */
const struct bfc_python_layout *bfc_python_layout_find(const char *version);

/* Walks the frames of the calling thread. `thread`: its thread state. `code_type`: PyCode_Type.
 * `line_of`: PyCode_Addr2Line. */
void bfc_python_layout_walk(const struct bfc_python_layout *layout, const void *thread,
                            const void *code_type, int (*line_of)(void *code, int offset),
                            bfc_python_visit *visit, void *context);

#endif
