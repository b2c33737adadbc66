/*
 * Arenas: one for each CUDA context in which this process allocates, with its pool.
 *
 * A context is known by its handle and, where the driver has cuCtxGetId, by its id, which is never
 * used again. An arena ends with its context: its regions are forgotten, not freed. Its struct
 * lives on until no thread refers to it: a thread keeps a reference to the one that it used last,
 * so that the usual call touches no counter.
 *
 * A context may have a second arena, of host memory, which lives and ends with the first.
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
    bool releases_at_exit;
};
extern __thread struct bfc_thread_arena bfc_thread_arena INITIAL_EXEC HIDDEN;

struct bfc_arena *bfc_arena_take(struct bfc_arena *owner);

/* Makes `arena` the thread's last one of its kind, and returns it. The caller's reference becomes
 * the thread's. */
struct bfc_arena *bfc_arena_set_last(struct bfc_arena *arena);

/* Whether the arena hands out host memory in place of its context's device memory. */
static inline bool bfc_arena_is_host(const struct bfc_arena *arena) {
    return arena->source->is_host;
}

/* Whether `arena` is the living arena of the context with this id (0: of any id); false if `arena`
 * is NULL. */
static inline bool bfc_arena_is_of(const struct bfc_arena *arena, CUcontext context,
                                   unsigned long long id) {
    return arena && arena->context == context && (!id || arena->id == id) &&
           !bfc_load_acquire(&arena->ended);
}

/* From now on allocations ask `placer` for a place before they ask the pool; NULL: they ask the
 * pool alone. */
void bfc_arena_set_placer(struct bfc_arena *arena, const struct bfc_placer *placer);

/* To be called in mode ordered while no block is pending: from then on requests are served without
 * a look for pending blocks. A thread that makes a block pending sets plain_most to 0, which ends
 * that. */
void bfc_arena_let_plain(struct bfc_arena *arena);

static inline uint64_t bfc_arena_plain_most(const struct bfc_arena *arena) {
    return bfc_load_relaxed(&arena->plain_most);
}

/*
 * These functions tell about the arena that the calling thread used last, and change nothing.
 *
 * bfc_arena_last_if returns the arena if its id is `id`, which is not 0, and its context is
 * current; else NULL. bfc_arena_last_if_holds also requires that `address` lies in the arena's
 * regions. bfc_arena_last_id returns the arena's id if its context is current, else 0.
 * bfc_arena_last_has_id says whether the arena's id is `id`, whichever context is current.
 */
struct bfc_arena *bfc_arena_last_if(const struct bfc_driver *driver, unsigned long long id);
struct bfc_arena *bfc_arena_last_if_holds(const struct bfc_driver *driver, unsigned long long id,
                                          CUdeviceptr address);
unsigned long long bfc_arena_last_id(const struct bfc_driver *driver);
bool bfc_arena_last_has_id(unsigned long long id);

/* The arena whose regions hold `address`; NULL: no pool of ours does. The arena is valid until the
 * thread next calls a function of this header or bfc_current_arena. */
static inline struct bfc_arena *bfc_arena_of(CUdeviceptr address) {
    struct bfc_arena *owner = bfc_region_owner(address);
    return LIKELY(owner == bfc_thread_arena.arena || !owner) ? owner : bfc_arena_take(owner);
}

/* The arena that the thread used last, if its regions hold `address`; else NULL. */
static inline struct bfc_arena *bfc_arena_if_last(CUdeviceptr address) {
    struct bfc_arena *owner = bfc_region_owner(address);
    return LIKELY(owner == bfc_thread_arena.arena) ? owner : NULL;
}

/* The living arena of the context with this id (0: any id), of device memory or of host memory,
 * with a reference that the caller drops; NULL: there is none. */
struct bfc_arena *bfc_arena_of_context(CUcontext context, unsigned long long id);
struct bfc_arena *bfc_arena_host_of_context(CUcontext context, unsigned long long id);
void bfc_arena_drop(struct bfc_arena *arena);

/* Iterates over the living arenas: returns the arena after `previous` (NULL: the first one), with a
 * reference that the caller drops, and drops the reference to `previous`; NULL: the end. An arena
 * that lives during the whole iteration is returned once, whichever others begin and end.
 * bfc_arena_next_on returns only arenas of that device's memory, bfc_arena_next_host only those of
 * host memory. */
struct bfc_arena *bfc_arena_next(struct bfc_arena *previous);
struct bfc_arena *bfc_arena_next_on(CUdevice device, struct bfc_arena *previous);
struct bfc_arena *bfc_arena_next_host(struct bfc_arena *previous);

/*
 * bfc_arena_enter and bfc_arena_leave enclose driver calls in the arena's context that the program
 * does not know of: calls of the helper thread, or of a thread that works in another context. By
 * the driver's rules a context must not end while it is in use. So bfc_arena_close, before the
 * context ends, waits until all threads have left, a second at most, and refuses further entries
 * until bfc_arena_reopen, if the context has not ended after all.
 *
 * bfc_arena_enter returns false if the context has ended or is about to end; if no hook saw the
 * end, the arena is lost afterwards. bfc_arena_await first waits until an end under way is decided,
 * a second at most, since the end may depend on what the calling thread does next.
 */
bool bfc_arena_enter(struct bfc_arena *arena);
bool bfc_arena_await(struct bfc_arena *arena);
void bfc_arena_leave(struct bfc_arena *arena);
void bfc_arena_close(struct bfc_arena *arena);
void bfc_arena_reopen(struct bfc_arena *arena);

/*
 * A context may end by a call that no hook sees, and the driver may give its handle to another one.
 * So outside bfc_arena_enter and bfc_arena_leave, whoever uses the stored handle first asks
 * bfc_arena_is_itself: does the handle still mean the arena's context, or one that a hook is about
 * to end? If not, the arena is lost: it leaves the table and the region map (with pages: the map
 * only once it has ended in full). The next review of contexts (interpose/context/contexts.h) takes
 * it with bfc_arena_take_lost and ends it.
 *
 * - bfc_arena_lose returns false if the arena was not in the table.
 * - bfc_arena_take_lost returns a lost arena with the table's reference; NULL: there is none left.
 * - bfc_arena_given_out: the driver has just allocated this range. A context whose region lies
 * there has ended, unless the context's id says otherwise.
 * - bfc_arena_living_of: as bfc_arena_of, but if bfc_arena_is_itself says no, loses the arena and
 * returns NULL.
 * - bfc_arena_make_current: as bfc_current_enter, for the arena's context.
 */
bool bfc_arena_is_itself(const struct bfc_driver *driver, const struct bfc_arena *arena);
bool bfc_arena_lose(const struct bfc_arena *arena);
struct bfc_arena *bfc_arena_take_lost(void);
void bfc_arena_given_out(CUdeviceptr start, uint64_t bytes);
struct bfc_arena *bfc_arena_living_of(CUdeviceptr address);
CUresult bfc_arena_make_current(const struct bfc_driver *driver, struct bfc_arena *arena,
                                bool *pushed);

/* Takes one more reference to the arena. */
void bfc_arena_keep(struct bfc_arena *arena);

/* Puts a new arena into the table; the caller has the only reference. If another thread was first,
 * the new arena is freed and the other thread's arena returned. `id` may be 0: any id. The result
 * has a reference that the caller drops; NULL: the arena is of host memory, and its home has
 * ended. */
struct bfc_arena *bfc_arena_publish(struct bfc_arena *arena, unsigned long long id);

/* Takes an arena whose context has ended out of the table, and returns it with the table's
 * reference; NULL: there is none left. */
struct bfc_arena *bfc_arena_unlink(CUcontext context, unsigned long long id);

#endif
