/*
 * The fork check. CUDA is unusable in a forked child, so everything is forwarded there: the
 * process's state (process.h) lies in memory that the kernel turns to zeros in any child with its
 * own copy of our memory, so that its `alive` is false there. This covers a raw clone too, which an
 * atfork handler would not see. bfc_process_is_forked reads `alive`.
 */
#ifndef BFC_INTERPOSE_FORK_CHECK_H
#define BFC_INTERPOSE_FORK_CHECK_H

#include <stddef.h>

/* Maps `size` bytes of zeros, which the kernel wipes in a forked child; munmap releases them. NULL:
 * the host has no memory, or the kernel cannot wipe (before Linux 4.14). Thread-safe. */
void *bfc_fork_check_map(size_t size);

#endif
