/*
 * Why a call of the driver may need device memory, in one word; calls.inc gives each call its word.
 *
 * A device may be full of what the pools only cache. Without the pools that memory would be free,
 * so a call that answers out of memory is made again after the pools have given it back
 * (interpose/driver/hooked_calls.h). NVIDIA documents that answer for some calls only; for the
 * others the word says why it may occur, or why it cannot. Every call that is retried changes
 * nothing when it fails.
 */
#ifndef BFC_INTERPOSE_MEMORY_NEEDS_H
#define BFC_INTERPOSE_MEMORY_NEEDS_H

enum bfc_need {
    BFC_NEED_MEMORY,     /* the call returns memory, or a reservation of memory */
    BFC_NEED_CONTEXT,    /* the call may make a context's page tables, stacks and heaps */
    BFC_NEED_QUEUE,      /* the call may make a stream's or event's queue or semaphore */
    BFC_NEED_CODE,       /* the call may load code and its globals, even if it is a query */
    BFC_NEED_LAUNCH,     /* a launch may need stacks, code to be loaded, or a graph's memory */
    BFC_NEED_HEAP,       /* the call sets the size of a heap, a stack or the printf buffer */
    BFC_NEED_MAPPING,    /* the call needs page tables, to map memory that exists already */
    BFC_NEED_DESCRIPTOR, /* the call makes the descriptor of a texture or surface */

    /* A call with one of the following words has no row in BFC_BYPASS_CALLS and
     * BFC_INCIDENTAL_CALLS. */
    BFC_NEED_OWN,     /* the call has a hook with logic of its own, which retries it where needed */
    BFC_NEED_HALFWAY, /* the call may need memory, but may fail when part of its work is done: a
                         second call would do that part again */
    BFC_NEED_NARROW,  /* the call dates from before CUDA 3.2, with pointers of 32 bits, which hold
                         no address of device memory today */
    BFC_NEED_WORK, /* the call submits work to a stream, and the memory for that was made with the
                      stream */
    BFC_NEED_RELEASE, /* the call frees or ends something */
    BFC_NEED_NONE,    /* the call reads or sets something, or changes the host's records of it */
};

#define BFC_NEED_RETRIED(need) ((int)(need) < (int)BFC_NEED_OWN)

#endif
