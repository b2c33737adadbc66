/*
 * What each call of the driver may need device memory for; calls.inc has a line for every call.
 *
 * A device may be full of what the pools only cache. Natively that memory is the device's, so a
 * call that answers out of memory is made once more after it was given back
 * (interpose/api/pass_through.h). NVIDIA documents that answer of some calls only; for the others
 * the word says why it may come, or why it does not. Whatever is retried changes nothing when it
 * fails.
 */
#ifndef BFC_INTERPOSE_MEMORY_NEEDS_H
#define BFC_INTERPOSE_MEMORY_NEEDS_H

enum bfc_need {
    BFC_NEED_MEMORY,     /* for what it gives: memory, or a reservation of it */
    BFC_NEED_CONTEXT,    /* for a context: page tables, stacks, heaps */
    BFC_NEED_QUEUE,      /* for a stream's or event's queue or semaphore */
    BFC_NEED_CODE,       /* for code and its globals, which may be loaded as late as they are asked
                            about */
    BFC_NEED_LAUNCH,     /* for stacks, code that is loaded only now, a graph's own memory */
    BFC_NEED_HEAP,       /* for the heap, stack or printf buffer whose size it sets */
    BFC_NEED_MAPPING,    /* for page tables: it makes memory reachable that is there already */
    BFC_NEED_DESCRIPTOR, /* for a texture's or surface's entry */

    /* The calls from here on are not made once more by bypass.c. */
    BFC_NEED_OWN,     /* has a hook of another file, which does it */
    BFC_NEED_HALFWAY, /* may, but part of it may be done when it fails: a second call would do that
                         part again */
    BFC_NEED_NARROW,  /* of before CUDA 3.2, with 32 bits for pointers: no memory fits there */
    BFC_NEED_WORK,    /* puts work into a stream: what that takes was set up with the stream */
    BFC_NEED_RELEASE, /* gives back or ends something */
    BFC_NEED_NONE,    /* asks or sets something, or changes the host's records of it */
};

#define BFC_NEED_RETRIED(need) ((int)(need) < (int)BFC_NEED_OWN)

#endif
