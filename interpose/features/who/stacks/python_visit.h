/* What is told of a Python function that a thread is in. */
#ifndef BFC_INTERPOSE_PYTHON_VISIT_H
#define BFC_INTERPOSE_PYTHON_VISIT_H

#include <stdbool.h>

/* Innermost first; the texts are gone when it returns. False: enough. */
typedef bool bfc_python_visit(void *context, const char *function, const char *file, int line);

#endif
