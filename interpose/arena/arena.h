/*
 * Arenas: an arena is the memory pool of one CUDA context in which this process allocates.
 *
 * An arena knows its context by the handle and, where the driver has cuCtxGetId, by the id, which
 * the driver never uses again. When the context ends, so does the arena: its regions are forgotten,
 * not freed. Its struct lives on until no thread refers to it. A thread keeps a reference to the
 * arena that it used last, so calls that use this arena again change no reference count.
 *
 * A context may have a second arena, of host memory (BFC_SPILL), which ends with the first.
 */
#ifndef BFC_INTERPOSE_ARENA_H
#define BFC_INTERPOSE_ARENA_H

#include "base/atomic.h"
#include "base/compiler.h"
#include "interpose/arena/region_map.h"
#include "interpose/arena/state.h"

/* The arenas that the calling thread used last, each with a reference that the thread holds. */
struct bfc_thread_arena {
    struct bfc_arena *arena; /* the last arena of device memory */
    struct bfc_arena *host;  /* the last arena of host memory */
    /* whether the thread had a current context when it last allocated by cudaMalloc's fast path,
     * and no hook has seen it lose that context since */
    bool has_context;
    bool releases_at_exit;
};
extern __thread struct bfc_thread_arena bfc_thread_arena INITIAL_EXEC HIDDEN;

struct bfc_arena *bfc_arena_take(struct bfc_arena *owner);

/* Records `arena` as the one of device memory, or of host memory, that the calling thread used
 * last, and returns it. The thread takes over the caller's reference. */
struct bfc_arena *bfc_arena_set_last(struct bfc_arena *arena);

/* Whether the arena hands out host memory in place of its context's device memory. */
static inline bool bfc_arena_is_host(const struct bfc_arena *arena) {
    return arena->source->is_host;
}

/* Whether `arena` belongs to `context`, which has not ended. `id` is the context's id; 0: the id is
 * not compared. False if `arena` is NULL. */
static inline bool bfc_arena_is_of(const struct bfc_arena *arena, CUcontext context,
                                   unsigned long long id) {
    return arena && arena->context == context && (!id || arena->id == id) &&
           !bfc_load_acquire(&arena->ended);
}

/* From now on allocations ask `placer`, which follows a plan (BFC_PLAN), before they ask the pool.
 * NULL: they ask the pool alone. */
void bfc_arena_set_placer(struct bfc_arena *arena, const struct bfc_placer *placer);

/* To be called in mode ordered (BFC_FREE) while no block is pending. Raises plain_most, so that
 * usual requests are served without a check for pending blocks. A thread that makes a block pending
 * sets plain_most to 0 again. */
void bfc_arena_let_plain(struct bfc_arena *arena);

static inline uint64_t bfc_arena_plain_most(const struct bfc_arena *arena) {
    return bfc_load_relaxed(&arena->plain_most);
}

/*
 * bfc_arena_last_of returns the arena that the calling thread used last if it lives and has this
 * id; NULL for the id 0. The arena's context need not be current.
 *
 * bfc_arena_last_if_holds returns that arena if, besides, its regions hold `address` and its
 * context is current; otherwise NULL. In the free modes lazy and ordered another context may be
 * current. If none is, the result is NULL: NVIDIA's cudaFree would make one current, and the caller
 * would skip that.
 */
struct bfc_arena *bfc_arena_last_if_holds(const struct bfc_driver *driver, unsigned long long id,
                                          CUdeviceptr address);
static inline struct bfc_arena *bfc_arena_last_of(unsigned long long id) {
    struct bfc_arena *arena = bfc_thread_arena.arena;
    return id && arena && arena->id == id && !bfc_load_acquire(&arena->ended) ? arena : NULL;
}

/* The arena whose regions hold `address`; NULL: the address is in no pool. The result is valid
 * until the thread next calls a function of this header or bfc_current_arena. */
static inline struct bfc_arena *bfc_arena_of(CUdeviceptr address) {
    struct bfc_arena *owner = bfc_region_owner(address);
    return LIKELY(owner == bfc_thread_arena.arena || !owner) ? owner : bfc_arena_take(owner);
}

/* Returns the arena that the calling thread used last if its regions hold `address` and its context
 * has not ended, as far as is known, else NULL. Regions of pages may stay in the map for a while
 * after that, when the driver may have given the context's handle to another one. */
static inline struct bfc_arena *bfc_arena_if_last(CUdeviceptr address) {
    struct bfc_arena *owner = bfc_region_owner(address);
    bool is_last = owner && LIKELY(owner == bfc_thread_arena.arena);
    return is_last && LIKELY(!bfc_load_acquire(&owner->ended)) ? owner : NULL;
}

/* Return the arena of device memory, or of host memory, of a context that has not ended. `id` is
 * the context's id; 0: not compared. The caller drops the reference. NULL: there is none. */
struct bfc_arena *bfc_arena_of_context(CUcontext context, unsigned long long id);
struct bfc_arena *bfc_arena_host_of_context(CUcontext context, unsigned long long id);
void bfc_arena_drop(struct bfc_arena *arena);

/* Iterates over the living arenas: returns the arena after `previous`, or the first if that is
 * NULL, with a reference that the caller drops, and drops the reference to `previous`. NULL: there
 * are no more. An arena that lives during the whole iteration is returned once, even if others
 * begin or end. bfc_arena_next_on returns only arenas of that device's memory, bfc_arena_next_host
 * only those of host memory. */
struct bfc_arena *bfc_arena_next(struct bfc_arena *previous);
struct bfc_arena *bfc_arena_next_on(CUdevice device, struct bfc_arena *previous);
struct bfc_arena *bfc_arena_next_host(struct bfc_arena *previous);

/*
 * bfc_arena_enter and bfc_arena_leave enclose the library's own driver calls in the arena's
 * context, if the helper thread makes them or a thread whose current context is another one. The
 * driver forbids ending a context that is in use, and the program does not know of these calls. So
 * a thread that is about to end the context first calls bfc_arena_close: from then on no thread can
 * enter, and bfc_arena_close waits, a second at most, until all have left. If the context does not
 * end after all, bfc_arena_reopen lets threads enter again.
 *
 * bfc_arena_enter returns false if the context has ended or is about to end. If it has ended
 * without a hook, bfc_arena_enter calls bfc_arena_lose. bfc_arena_await first waits while another
 * thread is about to end the context, but a second at most, since that thread may itself depend on
 * the caller.
 */
bool bfc_arena_enter(struct bfc_arena *arena);
bool bfc_arena_await(struct bfc_arena *arena);
void bfc_arena_leave(struct bfc_arena *arena);
void bfc_arena_close(struct bfc_arena *arena);
void bfc_arena_reopen(struct bfc_arena *arena);

/*
 * A context may end by a call that no hook sees, and the driver may give its handle to another
 * context. So outside bfc_arena_enter and bfc_arena_leave a stored handle is used only after
 * bfc_arena_is_itself: it tells whether the handle still means the arena's context, or a hook is
 * just ending that context. If neither, bfc_arena_lose takes the arena out of the table, and its
 * regions out of the region map (if it has pages, only once they are given back). The next review
 * of contexts (interpose/context/contexts.h) gets the arena from bfc_arena_take_lost and ends it.
 *
 * bfc_arena_lose returns false if the arena was not in the table; bfc_arena_take_lost returns a
 * lost arena with the table's reference, or NULL. bfc_arena_given_out, to be called when the driver
 * has allocated a range, loses arenas whose regions overlap it, unless the id of their context
 * shows that the context lives. bfc_arena_living_of: as bfc_arena_of, but an arena that is not
 * itself is lost, and the result NULL. bfc_arena_make_current: as bfc_current_enter.
 */
bool bfc_arena_is_itself(const struct bfc_driver *driver, const struct bfc_arena *arena);
bool bfc_arena_lose(const struct bfc_arena *arena);
struct bfc_arena *bfc_arena_take_lost(void);
bool bfc_arena_some_lost(void);
void bfc_arena_given_out(CUdeviceptr start, uint64_t bytes);
struct bfc_arena *bfc_arena_living_of(CUdeviceptr address);
CUresult bfc_arena_make_current(const struct bfc_driver *driver, struct bfc_arena *arena,
                                bool *pushed);

void bfc_arena_keep(struct bfc_arena *arena);

/* Puts a new arena, to which only the caller has a reference, into the table. If another thread has
 * already put an arena of the same context there, frees the new one and returns that arena. `id` is
 * the context's id; 0: it is not compared. The result has a reference that the caller drops; NULL:
 * `arena` was of host memory, its context has ended, and it was freed. */
struct bfc_arena *bfc_arena_publish(struct bfc_arena *arena, unsigned long long id);

/* Moves the arenas of a context that has ended, with the table's references, from the table to the
 * list that begins with `*list`; its links are `next`. Regions go as with bfc_arena_lose. */
void bfc_arena_unlink(CUcontext context, unsigned long long id, struct bfc_arena **list);

#endif
