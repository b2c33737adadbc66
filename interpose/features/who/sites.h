/*
 * Sites: distinct call stacks, each under a tag, and what was allocated at each.
 *
 * A site is known by a hash of its stack (64 bits: two stacks are taken for one with a chance below
 * 2^-30 at most). Its frames are kept as object and place when it is first seen, so that a library
 * may be unloaded later. All tables have a bound, are reserved when the first stack comes, and take
 * memory as they fill; what no longer fits goes to one site without frames.
 */
#ifndef BFC_INTERPOSE_SITES_H
#define BFC_INTERPOSE_SITES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "interpose/stats/stack_tables.h"
#include "layout/who.h"
#include "pool/structures/lock.h"

#define BFC_NATIVE_MOST 40u
#define BFC_PYTHON_MOST 32u

/* A stack as it was taken. */
struct bfc_stack {
    size_t native, python;
    uint32_t tag; /* a text's offset */
    uint64_t hash;
    uint64_t calls[BFC_NATIVE_MOST];
    struct bfc_who_frame frames[BFC_PYTHON_MOST];
};

struct bfc_sites {
    struct bfc_who_site *sites;
    struct bfc_who_frame *frames;
    struct bfc_who_object *objects;
    char *texts;
    size_t site_count, frame_count, object_count, text_bytes;
};
extern struct bfc_sites bfc_sites;

/* The same for a trace, without the lock. What is below the counts never changes but for sums. */
struct bfc_stack_tables bfc_sites_now(void);

/* Of the sites, and of all that counts by site: held in every call below but where it says so.
 * Taken before a pool's; no other lock is waited for within it. */
extern struct pool_lock bfc_who_lock;

/* Reserves the tables, once a process; without the lock. False: the host has no memory. */
bool bfc_sites_begin(void);

/* The text's offset; the empty text's where there is no room. */
uint32_t bfc_sites_text(const char *text);

/* A tag's text; that of "(other tags)" once there are too many different ones. */
uint32_t bfc_sites_tag(const char *text);

/* The stack's site, which is added if it is new; 0: there is no room. */
uint32_t bfc_sites_find(const struct bfc_stack *stack);

#endif
