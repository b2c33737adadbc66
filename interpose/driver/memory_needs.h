/*
 * Why a call of the driver may need device memory, in one word; calls.inc gives each call its word.
 *
 * A device may be full of what the pools only cache. Without the pools that memory would be free,
 * so a call that answers out of memory is made again after the pools have given it back
 * (interpose/entry/pass_through_hooks.c). NVIDIA documents that answer for some calls only; for the
 * others the word says why it may occur, or why it cannot. Every call that is retried changes
 * nothing when it fails.
 */
#ifndef BFC_INTERPOSE_MEMORY_NEEDS_H
#define BFC_INTERPOSE_MEMORY_NEEDS_H

enum bfc_need {
    BFC_NEED_MEMORY,     /* for what it returns: memory, or a reservation of it */
    BFC_NEED_CONTEXT,    /* for a context: page tables, stacks, heaps */
    BFC_NEED_QUEUE,      /* for a stream's or event's queue or semaphore */
    BFC_NEED_CODE,       /* for code and its globals: a query may be what loads them */
    BFC_NEED_LAUNCH,     /* for stacks, code that is loaded at the first launch, a graph's memory */
    BFC_NEED_HEAP,       /* for the heap, stack or printf buffer whose size it sets */
    BFC_NEED_MAPPING,    /* for page tables: it maps memory that exists already */
    BFC_NEED_DESCRIPTOR, /* for a texture's or surface's entry */

    /* Calls with a word from here on are not in calls_retried_when_full.h. */
    BFC_NEED_OWN,     /* has a hook in hooks.c, which retries it where needed */
    BFC_NEED_HALFWAY, /* may need memory, but may fail with part of it done: a second call would do
                         that part again */
    BFC_NEED_NARROW,  /* dates from before CUDA 3.2, with pointers of 32 bits, which hold no address
                         of device memory today */
    BFC_NEED_WORK,    /* submits work to a stream: the memory for that came with the stream */
    BFC_NEED_RELEASE, /* frees or ends something */
    BFC_NEED_NONE,    /* reads or sets something, or changes the host's records of it */
};

#define BFC_NEED_RETRIED(need) ((int)(need) < (int)BFC_NEED_OWN)

#endif
