#include "interpose/features/sleep/turn.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/thread_identity.h"
#include "interpose/config/process.h"
#include "interpose/features/sleep/store.h"
#include "interpose/stats/published_segment.h"
#include "interpose/table/counter.h"

struct bfc_sleeping bfc_sleeping = {.file = -1};

/* The turn, the lock for changing whether the process sleeps, is a single word: a signal handler
 * that interrupts the thread in taking or releasing the lock sees it either taken or free. */
static uintptr_t holder; /* atomic: the thread that has the lock; 0: no thread has it */
static uint32_t given;   /* atomic; a futex: how often the lock was released */
/* Atomic: how many threads wait for the lock `holder`, and how many of these wait inside a hooked
 * call that has begun already: a tool's callback within that call has made another call. */
static unsigned wanting, wanting_inside;
static bool some_ended; /* atomic: whether an arena has ended while a thread had the lock */
static enum bfc_sleep_state state; /* atomic; only changed by the thread that has the lock */

struct bfc_segment_sleep *bfc_sleep_told(void) {
    return &bfc_segment_counters()->sleep;
}

enum bfc_sleep_state bfc_sleep_state(void) {
    return bfc_load_seq_cst(&state);
}

void bfc_sleep_enter_state(enum bfc_sleep_state next) {
    bfc_store_seq_cst(&state, next);
    bfc_store_relaxed(&bfc_sleep_told()->since_ns, bfc_wall_clock_ns());
    bfc_store_release(&bfc_sleep_told()->state, (uint64_t)next);
}

static bool try_turn(void) {
    uintptr_t nobody = 0;
    return bfc_compare_exchange_seq_cst(&holder, &nobody, bfc_thread_identity());
}

/* Waits for the lock `holder`. False: the process is a forked child, in which the thread that has
 * the lock may not exist. */
static bool await_turn(void) {
    int error = errno;
    for (;;) {
        uint32_t seen = bfc_load_seq_cst(&given);
        if (try_turn())
            return true;
        if (bfc_process_is_forked())
            return false;
        syscall(SYS_futex, &given, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
        errno = error;
    }
}

bool bfc_turn_take(void) {
    bool inside = bfc_load_relaxed(&bfc_submitter.count) % BFC_SUBMISSION != 0;
    if (bfc_load_relaxed(&holder) == bfc_thread_identity())
        return false;
    bfc_fetch_add_seq_cst(&wanting, 1);
    bfc_fetch_add_seq_cst(&wanting_inside, inside);
    bool has = await_turn();
    bfc_fetch_sub_seq_cst(&wanting_inside, inside);
    bfc_fetch_sub_seq_cst(&wanting, 1);
    return has;
}

/* Releases the lock. If an arena ends meanwhile, either the thread that sets `some_ended` gets the
 * lock, or this thread sees `some_ended`: all accesses to both are sequentially consistent. */
void bfc_turn_give(void) {
    bfc_store_seq_cst(&holder, 0);
    bfc_fetch_add_seq_cst(&given, 1);
    syscall(SYS_futex, &given, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
    if (bfc_load_seq_cst(&some_ended))
        bfc_sleep_forget_ended();
}

bool bfc_turn_is_wanted(bool inside) {
    return bfc_load_seq_cst(inside ? &wanting_inside : &wanting) != 0;
}

void bfc_sleeping_end(void) {
    struct bfc_sleeping_arena *one;
    while ((one = bfc_sleeping.arenas)) {
        bfc_sleeping.arenas = one->next;
        bfc_sleeping_arena_close(one);
    }
    bfc_sleep_store_close(bfc_sleeping.file);
    bfc_sleeping.file = -1;
    bfc_counter->open();
    bfc_sleep_enter_state(BFC_SLEEP_AWAKE);
}

void bfc_sleeping_drop_ended(void) {
    struct bfc_sleeping_arena **link = &bfc_sleeping.arenas, *one;
    if (!bfc_sleeping.arenas)
        return;
    while ((one = *link))
        if (bfc_load_acquire(&one->arena->ended)) {
            *link = one->next;
            bfc_sleeping_arena_close(one);
        } else {
            link = &one->next;
        }
    if (!bfc_sleeping.arenas)
        bfc_sleeping_end();
}

void bfc_sleep_forget_ended(void) {
    if (bfc_sleep_state() == BFC_SLEEP_AWAKE || bfc_process_is_forked())
        return;
    bfc_store_seq_cst(&some_ended, true);
    if (!try_turn())
        return;
    bfc_store_seq_cst(&some_ended, false);
    if (bfc_sleep_state() == BFC_SLEEP_ASLEEP)
        bfc_sleeping_drop_ended();
    bfc_turn_give();
}
