/*
 * Sites: each distinct pair of call stack and tag, and what was allocated there.
 *
 * A site is found by a 64-bit hash of its stack; the probability that any two stacks share a hash
 * is below 2^-30. A new site's frames are stored as object and offset, so that they stay valid when
 * a library is unloaded. All tables are bounded; their addresses are reserved with the first stack,
 * and they take memory as they fill. Stacks that no longer fit all count for site 0, which has no
 * frames.
 */
#ifndef BFC_INTERPOSE_SITES_H
#define BFC_INTERPOSE_SITES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "interpose/features/common/stack_tables.h"
#include "layout/who.h"
#include "pool/structures/lock.h"

#define BFC_NATIVE_MOST 40u
#define BFC_PYTHON_MOST 32u

struct bfc_stack {
    size_t native, python;
    uint32_t tag; /* offset of the tag's text; 0: no tag */
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

/* Returns the tables as a trace needs them. Takes the lock itself; what it returns may be read
 * without the lock, because elements below the counts never change, except for sums. */
struct bfc_stack_tables bfc_sites_now(void);

/* Guards the sites and the samples. The caller of each function below must hold it, unless the
 * function says otherwise. A thread that holds it may wait for a pool's lock, but for no other. */
extern struct pool_lock bfc_who_lock;

/* Reserves the tables at the first call, without the lock. False: the host has no memory. */
bool bfc_sites_begin(void);

/* Returns the text's offset, after adding it if it is new; 0, the empty text's, if there is no
 * room. */
uint32_t bfc_sites_text(const char *text);

/* Returns the offset of a tag's text, as bfc_sites_text does, but the offset of "(other tags)" once
 * there are too many different tags. */
uint32_t bfc_sites_tag(const char *text);

/* Returns the offset of the executable's path, read once, since a program may be renamed. */
uint32_t bfc_sites_executable(void);

/* Returns the stack's site, after adding it if it is new; 0 if there is no room. */
uint32_t bfc_sites_find(const struct bfc_stack *stack);

/* Takes the calling thread's stack, native and Python. To be called without the lock, once
 * bfc_sites_begin has succeeded. */
void bfc_who_take_stack(struct bfc_stack *stack);

/* As bfc_sites_find, but takes the lock first, and leaves it held. */
uint32_t bfc_who_enter_at_site(const struct bfc_stack *stack);

#endif
