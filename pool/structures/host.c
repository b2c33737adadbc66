#include "pool/structures/host.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/numbers.h"

/* An array is extended by at least this many bytes at a time, so that system calls are few. */
#define COMMIT_STEP ((uint64_t)256 << 10)

void *host_array_open(struct host_array *array, uint64_t bytes, uint64_t usable) {
    bytes = bfc_round_up(bytes, COMMIT_STEP);
    void *base = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return NULL;
    /* No huge pages: the kernel clears a huge page at its first use, so one allocation would take
     * long. */
    madvise(base, bytes, MADV_NOHUGEPAGE);
    *array = (struct host_array){.base = base, .reserved = bytes};
    return host_array_commit(array, usable) ? base : NULL;
}

void host_array_drop(struct host_array *array) {
    if (array->base)
        munmap(array->base, array->reserved);
    *array = (struct host_array){0};
}

bool host_array_commit_slowly(struct host_array *array, uint64_t bytes) {
    bytes = bfc_round_up(bytes, COMMIT_STEP);
    if (bytes > array->reserved)
        return false;
    if (mprotect(array->base + array->committed, bytes - array->committed, PROT_READ | PROT_WRITE))
        return false;
    array->committed = bytes;
    return true;
}

void host_array_give_back(struct host_array *array, uint64_t bytes) {
    bytes = bfc_round_up(bytes, (uint64_t)sysconf(_SC_PAGESIZE));
    if (bytes < array->committed)
        madvise(array->base + bytes, array->committed - bytes, MADV_DONTNEED);
}
