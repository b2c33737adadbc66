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

/* What the calling thread used last, with a reference held; for the functions below. */
struct bfc_thread_arena {
    struct bfc_arena *arena;
    struct bfc_arena *host; /* of those of host memory */
    bool releases_at_exit;
};
extern __thread struct bfc_thread_arena bfc_thread_arena INITIAL_EXEC HIDDEN;

struct bfc_arena *bfc_arena_take(struct bfc_arena *owner);

/* Makes `arena`, of which the caller has a reference to give, the thread's last of its kind;
 * returns it. */
struct bfc_arena *bfc_arena_set_last(struct bfc_arena *arena);

/* Whether it hands out host memory in place of its context's device memory. */
static inline bool bfc_arena_is_host(const struct bfc_arena *arena) {
    return arena->source->is_host;
}

/* Whether it is the living one of the context with this id (0: not known); it may be NULL. */
static inline bool bfc_arena_is_of(const struct bfc_arena *arena, CUcontext context,
                                   unsigned long long id) {
    return arena && arena->context == context && (!id || arena->id == id) &&
           !bfc_load_acquire(&arena->ended);
}

/* Who is asked in the pool's place from now on; NULL: nobody. */
void bfc_arena_set_placer(struct bfc_arena *arena, const struct bfc_placer *placer);

static inline uint64_t bfc_arena_plain_most(const struct bfc_arena *arena) {
    return bfc_load_relaxed(&arena->plain_most);
}

/*
 * The arena of the current context, if it is the one that this thread used last and its id is `id`,
 * which is not 0; else NULL, and nothing has changed. bfc_arena_last_if_holds: and if `address`
 * lies in its regions. bfc_arena_last_id: the id of the one that this thread used last, if its
 * context is current; else 0. bfc_arena_last_has_id: whether `id` is that of the one that this
 * thread used last, current or not.
 */
struct bfc_arena *bfc_arena_last_if(const struct bfc_driver *driver, unsigned long long id);
struct bfc_arena *bfc_arena_last_if_holds(const struct bfc_driver *driver, unsigned long long id,
                                          CUdeviceptr address);
unsigned long long bfc_arena_last_id(const struct bfc_driver *driver);
bool bfc_arena_last_has_id(unsigned long long id);

/* The arena whose regions hold `address`, or NULL: not ours. Valid as above. */
static inline struct bfc_arena *bfc_arena_of(CUdeviceptr address) {
    struct bfc_arena *owner = bfc_region_owner(address);
    return LIKELY(owner == bfc_thread_arena.arena || !owner) ? owner : bfc_arena_take(owner);
}

/* The same, if it is the one that this thread used last; else NULL. */
static inline struct bfc_arena *bfc_arena_if_last(CUdeviceptr address) {
    struct bfc_arena *owner = bfc_region_owner(address);
    return LIKELY(owner == bfc_thread_arena.arena) ? owner : NULL;
}

/* The living arena of a context, whatever its id is if that is 0, with a reference to drop; NULL:
 * none. bfc_arena_host_of_context: the one of host memory. */
struct bfc_arena *bfc_arena_of_context(CUcontext context, unsigned long long id);
struct bfc_arena *bfc_arena_host_of_context(CUcontext context, unsigned long long id);
void bfc_arena_drop(struct bfc_arena *arena);

/*
 * Goes through the living arenas: the one after `previous`, whose reference it takes over (NULL:
 * the first), with a reference to drop; NULL: there is none left. Each arena that lives all the
 * while is met once, whatever others begin and end meanwhile. bfc_arena_next_on: those of a
 * device's memory. bfc_arena_next_host: those of host memory.
 */
struct bfc_arena *bfc_arena_next(struct bfc_arena *previous);
struct bfc_arena *bfc_arena_next_on(CUdevice device, struct bfc_arena *previous);
struct bfc_arena *bfc_arena_next_host(struct bfc_arena *previous);

/*
 * Around calls of ours in the arena's context that the program does not know of: of the helper, or
 * of a thread that works in another context. False: the context has ended, or is about to; where no
 * hook saw that, the arena is lost by then. The
 * program may end it at any time, but by the driver's rules not while others use it: so the end,
 * between bfc_arena_close and bfc_arena_end or, if it does not come to that, bfc_arena_reopen,
 * waits for those inside, a second at most. Who comes meanwhile is turned away; bfc_arena_await
 * waits for the outcome, a second at most too, since the end may need what its thread does next.
 */
bool bfc_arena_enter(struct bfc_arena *arena);
bool bfc_arena_await(struct bfc_arena *arena);
void bfc_arena_leave(struct bfc_arena *arena);
void bfc_arena_close(struct bfc_arena *arena);
void bfc_arena_reopen(struct bfc_arena *arena);

/*
 * A context may end by a call that no hook sees, and its handle may then be another's. So whoever
 * uses the stored handle outside bfc_arena_enter asks first: bfc_arena_is_itself says whether it
 * still means the arena's context, or a hook is about to end that. If not, the arena is lost: it
 * has left the table, and nothing finds it by its regions (with pages: once it has ended in full).
 * The next review of contexts (interpose/context/contexts.h) takes it and does the rest.
 *
 * bfc_arena_lose: false: it was not in the table. bfc_arena_take_lost: with the table's reference;
 * NULL: there is none left. bfc_arena_given_out: the driver has just given the range to somebody,
 * so whose region it was has ended, unless its context's id says that it has not.
 * bfc_arena_living_of: as bfc_arena_of, of those that are themselves. bfc_arena_make_current: as
 * bfc_current_enter, for the arena's context.
 */
bool bfc_arena_is_itself(const struct bfc_driver *driver, const struct bfc_arena *arena);
bool bfc_arena_lose(const struct bfc_arena *arena);
struct bfc_arena *bfc_arena_take_lost(void);
void bfc_arena_given_out(CUdeviceptr start, uint64_t bytes);
struct bfc_arena *bfc_arena_living_of(CUdeviceptr address);
CUresult bfc_arena_make_current(const struct bfc_driver *driver, struct bfc_arena *arena,
                                bool *pushed);

/* One more reference, to drop. */
void bfc_arena_keep(struct bfc_arena *arena);

/*
 * Puts a new arena, of which the caller has the only reference, into the table, unless another
 * thread was first: then that one comes back, and the new one is freed. `id` may be 0, as above.
 * What comes back has a reference to drop; NULL: the arena is of host memory, and its home has
 * ended.
 */
struct bfc_arena *bfc_arena_publish(struct bfc_arena *arena, unsigned long long id);

/*
 * Takes an arena of a context that has ended out of the table. It comes back with the table's
 * reference; NULL: there is none left.
 */
struct bfc_arena *bfc_arena_unlink(CUcontext context, unsigned long long id);

#endif
