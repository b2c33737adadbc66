/* What the library that serves this process publishes of it. */
#ifndef BFC_TESTS_INTEGRATION_PUBLISHED_H
#define BFC_TESTS_INTEGRATION_PUBLISHED_H

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "layout/segment.h"

static inline const unsigned char *own_segment(void) {
    static const unsigned char *bytes;
    char path[128];
    struct stat status;
    if (!bytes && stat("/proc/self/ns/pid", &status) == 0) {
        snprintf(path, sizeof path, "/dev/shm" BFC_SEGMENT_NAME_FORMAT, getuid(),
                 (unsigned long)status.st_ino, getpid());
        int file = open(path, O_RDONLY | O_CLOEXEC);
        void *mapped =
            file < 0 ? MAP_FAILED : mmap(NULL, BFC_SEGMENT_SIZE, PROT_READ, MAP_SHARED, file, 0);
        if (file >= 0)
            close(file);
        bytes = mapped == MAP_FAILED ? NULL : mapped;
    }
    return bytes;
}

/* That of the youngest context that has a pool; NULL: none has. */
static inline const struct bfc_segment_pool *own_section(void) {
    const unsigned char *bytes = own_segment();
    const struct bfc_segment_pool *newest = NULL;
    for (unsigned i = 0; bytes && i < BFC_SEGMENT_POOLS; i++) {
        const struct bfc_segment_pool *section =
            (const struct bfc_segment_pool *)(bytes + BFC_SEGMENT_POOLS_OFFSET) + i;
        if (section->state == BFC_POOL_ACTIVE &&
            (!newest || section->context_id > newest->context_id))
            newest = section;
    }
    return newest;
}

#endif
