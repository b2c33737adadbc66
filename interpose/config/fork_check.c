/* A page of memory that the kernel wipes in a forked child, so that the child can be recognised. */
#include "interpose/config/fork_check.h"

#include <sys/mman.h>

void *bfc_fork_check_map(size_t size) {
    void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return NULL;
    if (madvise(page, size, MADV_WIPEONFORK) != 0) {
        munmap(page, size);
        return NULL;
    }
    return page;
}
