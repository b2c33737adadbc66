#include "interpose/features/sleep/turn.h"

#include <pthread.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "interpose/features/sleep/store.h"
#include "interpose/stats/published_segment.h"
#include "interpose/table/counter.h"

struct bfc_sleeping bfc_sleeping = {.file = -1};

/* The turn: whether a thread has it. Old versions of glibc have no pthread_mutex_trylock under the
 * name that newer ones link. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards `taken` */
static pthread_cond_t given = PTHREAD_COND_INITIALIZER;
static bool taken;
static unsigned wanting;           /* atomic: threads that wait for the turn */
static enum bfc_sleep_state state; /* atomic; changed by the turn's holder */
static __thread bool has_turn INITIAL_EXEC;

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

bool bfc_turn_take(void) {
    if (has_turn)
        return false;
    bfc_fetch_add_seq_cst(&wanting, 1);
    pthread_mutex_lock(&lock);
    while (taken)
        pthread_cond_wait(&given, &lock);
    taken = has_turn = true;
    pthread_mutex_unlock(&lock);
    bfc_fetch_sub_seq_cst(&wanting, 1);
    return true;
}

bool bfc_turn_try(void) {
    pthread_mutex_lock(&lock);
    bool free = !taken;
    if (free)
        taken = has_turn = true;
    pthread_mutex_unlock(&lock);
    return free;
}

void bfc_turn_give(void) {
    pthread_mutex_lock(&lock);
    taken = has_turn = false;
    pthread_cond_signal(&given);
    pthread_mutex_unlock(&lock);
}

bool bfc_turn_is_wanted(void) {
    return bfc_load_seq_cst(&wanting) != 0;
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
    if (bfc_sleep_state() != BFC_SLEEP_ASLEEP || !bfc_turn_try())
        return;
    if (bfc_sleep_state() == BFC_SLEEP_ASLEEP)
        bfc_sleeping_drop_ended();
    bfc_turn_give();
}
