/* Which libraries hold the memory in use, by the samples (BFC_STACKS). Thread-safe. */
#ifndef BFC_INTERPOSE_LIBRARIES_H
#define BFC_INTERPOSE_LIBRARIES_H

#include <stddef.h>

struct bfc_who_library {
    const char *path; /* of the object that called, past CUDA's own; "": the executable */
    double bytes;     /* as asked for; but with BFC_STACKS=all an estimate: the library's part of
                         the samples, of what is known to be in use */
};

/* The largest, largest first; returns how many, 0 without samples. O(samples + sites). */
size_t bfc_who_libraries(struct bfc_who_library *largest, size_t most);

#endif
