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
    uint32_t tag; /* offset of the tag's text in bfc_sites.texts; 0: no tag */
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

/* Returns the tables with the number of their entries, for a trace. Takes bfc_who_lock itself. The
 * tables may be read without the lock, because entries below the counts never change, except for
 * the sums over samples. */
struct bfc_stack_tables bfc_sites_now(void);

/* Guards the sites and the samples. The caller of each function below must hold this lock, unless
 * the function says otherwise. A thread that holds it may wait for a pool's lock, but for no other
 * lock. */
extern struct pool_lock bfc_who_lock;

/* Reserves memory for the tables of sites at the first call. Called without bfc_who_lock. False:
 * the host has no memory. */
bool bfc_sites_begin(void);

/* Returns the offset of the text in bfc_sites.texts, after adding the text if it is new; 0, the
 * offset of the empty text, if there is no room. */
uint32_t bfc_sites_text(const char *text);

/* Returns the offset of a tag's text in bfc_sites.texts, after adding the text if it is new; the
 * offset of the text "(other tags)" if there are too many different tags to add it. */
uint32_t bfc_sites_tag(const char *text);

/* Returns the offset of the executable's path in bfc_sites.texts. The path is read only once, since
 * the file may be renamed while the program runs. */
uint32_t bfc_sites_executable(void);

/* Returns the index of the site of this call stack, after adding the site if it is new; 0 if there
 * is no room. */
uint32_t bfc_sites_find(const struct bfc_stack *stack);

/* Records the calling thread's call stack, with its native and Python frames, and its tag. To be
 * called without bfc_who_lock, once bfc_sites_begin has succeeded. */
void bfc_who_take_stack(struct bfc_stack *stack);

/* Takes bfc_who_lock, and keeps it for the caller. Returns the index of the site of this call
 * stack, after adding the site if it is new; 0 if there is no room. */
uint32_t bfc_who_enter_at_site(const struct bfc_stack *stack);

#endif
