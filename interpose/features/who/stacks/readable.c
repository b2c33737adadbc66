/* Copies memory by a system call, which fails where the memory cannot be read. */
#include "interpose/features/who/stacks/readable.h"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/atomic.h"

#define PAGE ((uint64_t)4096) /* the page size of every supported machine is a multiple of this */

/* How many bytes below a wanted address are copied along with it. A walk of a stack goes to higher
 * addresses, but the values that a frame has saved lie a little below its start. */
#define BELOW ((uint64_t)64)

static bool begins_in_sandbox; /* atomic: whether the process was in a sandbox (seccomp) already
                                  when the library found the driver */

static bool is_in_sandbox(void) {
    return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != 0;
}

void bfc_readable_begin_process(void) {
    bfc_store_relaxed(&begins_in_sandbox, is_in_sandbox());
}

/* Returns the calling thread's id, or 0 where a sandbox may kill the process for reading memory by
 * a system call. The process's id would not do, since its first thread, which has that id, may have
 * ended. */
static int thread_to_ask(void) {
    bool may_ask = bfc_load_relaxed(&begins_in_sandbox) || !is_in_sandbox();
    return may_ask ? (int)syscall(SYS_gettid) : 0;
}

/*
 * Copies nothing beyond the page of the wanted address, since the next page may be slow to read, or
 * may block the reader.
 */
bool bfc_readable_fetch(struct bfc_readable *readable, uint64_t address) {
    uint64_t page = address & ~(PAGE - 1);
    uint64_t from = address - page > BELOW ? (address - BELOW) & ~UINT64_C(7) : page;
    uint64_t left = page + PAGE - from,
             size = left < BFC_READABLE_BYTES ? left : BFC_READABLE_BYTES;
    struct iovec to = {readable->bytes, size}, it = {(void *)from, size};
    if (readable->thread < 0)
        readable->thread = thread_to_ask();
    readable->from = from;
    readable->size = 0;
    if (readable->thread &&
        syscall(SYS_process_vm_readv, readable->thread, &to, 1UL, &it, 1UL, 0UL) == (long)size)
        readable->size = size;
    return readable->size;
}

bool bfc_readable_copy(struct bfc_readable *readable, uint64_t address, void *to, size_t size) {
    while (size) {
        uint64_t offset = address - readable->from;
        if (offset >= readable->size) {
            if (!bfc_readable_fetch(readable, address))
                return false;
            offset = address - readable->from;
        }
        size_t part = readable->size - offset < size ? readable->size - offset : size;
        memcpy(to, readable->bytes + offset, part);
        to = (char *)to + part;
        address += part;
        size -= part;
    }
    return true;
}
