/*
 * The turn, which is a lock for changing whether the process sleeps (sleep.h), and what only the
 * thread that has it may use.
 */
#ifndef BFC_INTERPOSE_SLEEP_TURN_H
#define BFC_INTERPOSE_SLEEP_TURN_H

#include "interpose/features/sleep/sleeping_arena.h"

/* The arenas whose memory is asleep, or is being put to sleep or woken. */
struct bfc_sleeping {
    struct bfc_sleeping_arena *arenas; /* the first arena of the list; NULL: there is none */
    int file;                          /* the store's file (store.h); -1: there is no store */
};
extern struct bfc_sleeping bfc_sleeping;

/* Locks the turn, after a wait for the thread that has it. If that thread is putting the process to
 * sleep, it stops and unlocks the turn; but if the sleep is for a job that waits for memory, only a
 * caller inside a submission stops it (sleep.h). False: the calling thread has the turn already, as
 * when a signal handler or a tool's callback calls this; or the process was forked. */
bool bfc_turn_take(void);
void bfc_turn_give(void);

/* Whether a thread waits for the turn, the lock for falling asleep and waking. `inside`: only
 * threads count that are in a call which submits work, and cannot leave that call before they have
 * the lock. */
bool bfc_turn_is_wanted(bool inside);

/* Sets the process's state, and publishes it in the segment for other processes. */
void bfc_sleep_enter_state(enum bfc_sleep_state state);

/* Ends sleep: the pools may move their pages again, the store is closed, and submissions go on. */
void bfc_sleeping_end(void);

/* Removes arenas whose contexts have ended from the list; with the last one, sleep ends. */
void bfc_sleeping_drop_ended(void);

#endif
