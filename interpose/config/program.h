/* Which program this is, for what was recorded of it to be known again (layout/trace.h). */
#ifndef BFC_INTERPOSE_PROGRAM_H
#define BFC_INTERPOSE_PROGRAM_H

#include <stdint.h>

/* Of the executable's path and its first page, in which the build id usually lies; and of the
 * arguments. 0: unknown. Thread-safe; they read files. */
uint64_t bfc_program_executable_hash(void);
uint64_t bfc_program_argument_hash(void);

#endif
