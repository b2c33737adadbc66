/* What was not freed by the process's end, and frees that were refused (BFC_SUMMARY=leaks). */
#ifndef BFC_INTERPOSE_LEAKS_H
#define BFC_INTERPOSE_LEAKS_H

#include <stdbool.h>

/* Writes it to standard error. Once, at the end. */
void bfc_leaks_tell(void);

/* Whether any block is still in use. */
bool bfc_leaks_exist(void);

#endif
