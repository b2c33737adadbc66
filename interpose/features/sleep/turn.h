/*
 * The turn, which is a lock for changing whether the process sleeps (sleep.h), and what only the
 * thread that has it may use.
 */
#ifndef BFC_INTERPOSE_SLEEP_TURN_H
#define BFC_INTERPOSE_SLEEP_TURN_H

#include "interpose/features/sleep/sleeping_arena.h"

/* The memory that is asleep, or is being put to sleep or woken. */
struct bfc_sleeping {
    struct bfc_sleeping_arena *arenas; /* NULL: no memory */
    int file;                          /* of the store; -1: there is no store */
};
extern struct bfc_sleeping bfc_sleeping;

/* Takes the turn, and has a fall under way end. False: the thread has it already, since a signal
 * handler of the program, or a tool's callback, runs in the middle of a fall or wake; or the
 * process was forked. */
bool bfc_turn_take(void);
void bfc_turn_give(void);

/* Whether a thread waits for the turn; `inside`: one that is itself inside a submission, which does
 * not end before it has the turn. */
bool bfc_turn_is_wanted(bool inside);

/* Sets the process's state, also in the segment, where other processes read it. */
void bfc_sleep_enter_state(enum bfc_sleep_state state);

/* Makes the process awake: thaws all pages, drops the store, and opens the gate. */
void bfc_sleeping_end(void);

/* Forgets the arenas whose contexts have ended. */
void bfc_sleeping_drop_ended(void);

#endif
