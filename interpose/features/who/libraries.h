/* Which libraries hold the memory in use, by the samples (BFC_STACKS). Thread-safe. */
#ifndef BFC_INTERPOSE_LIBRARIES_H
#define BFC_INTERPOSE_LIBRARIES_H

#include <stddef.h>

struct bfc_who_library {
    const char *path; /* path of the innermost object in the call stack that is not CUDA's; "":
                         the executable */
    /* Bytes in use, as the program asked for. Exact with BFC_STACKS=all; else an estimate: the
     * bytes in use are shared out in proportion to the samples. */
    double bytes;
};

/* Lists at most `most` libraries, largest first, and returns how many; 0 without samples. Takes
 * time in proportion to samples and sites. */
size_t bfc_who_libraries(struct bfc_who_library *largest, size_t most);

#endif
