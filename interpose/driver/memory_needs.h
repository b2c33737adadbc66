/*
 * Why a call of the driver may need device memory. calls.inc gives each call one of these
 * constants.
 *
 * A device may be full of memory that the pools hold only as a cache. Without the pools that memory
 * would be free. So when a call fails with out of memory, the pools give such memory back and the
 * call is made again (interpose/driver/hooked_calls.h). NVIDIA documents that error for some calls
 * only; for the others the constant says why it may occur, or why not. Only calls that change
 * nothing when they fail are made again.
 */
#ifndef BFC_INTERPOSE_MEMORY_NEEDS_H
#define BFC_INTERPOSE_MEMORY_NEEDS_H

enum bfc_need {
    BFC_NEED_MEMORY,  /* the call allocates memory, or reserves it */
    BFC_NEED_CONTEXT, /* the call may make a context's page tables, stacks and heaps */
    BFC_NEED_QUEUE,   /* the call may make a stream's or event's queue or semaphore */
    BFC_NEED_CODE,    /* the call, even if it is a query, may load code with its global variables */
    BFC_NEED_LAUNCH,  /* a launch may need stacks, code to be loaded, or a graph's memory */
    BFC_NEED_HEAP,    /* the call sets the size of a heap, a stack or the printf buffer */
    BFC_NEED_MAPPING, /* the call needs page tables, to map memory that exists already */
    BFC_NEED_DESCRIPTOR, /* the call makes the descriptor of a texture or surface */

    /* Calls with one of the constants below have no row in BFC_BYPASS_CALLS and
     * BFC_INCIDENTAL_CALLS of hooked_calls.h, so no hook of those tables makes them again. */
    BFC_NEED_OWN, /* the call has a hook of its own, which makes the call again where needed */
    /* the call may fail halfway, and a second one would do the first half again */
    BFC_NEED_HALFWAY,
    /* a call from before CUDA 3.2, with pointers of 32 bits, which cannot address today's device
     * memory */
    BFC_NEED_NARROW,
    /* the call submits work to a stream, which got the memory for its work when it was made */
    BFC_NEED_WORK,
    BFC_NEED_RELEASE, /* the call frees or destroys something */
    BFC_NEED_NONE,    /* the call reads or sets something, or changes records on the host */
};

#define BFC_NEED_RETRIED(need) ((int)(need) < (int)BFC_NEED_OWN)

#endif
