/*
 * The turn (sleep.h), and what only its holder may touch.
 */
#ifndef BFC_INTERPOSE_SLEEP_TURN_H
#define BFC_INTERPOSE_SLEEP_TURN_H

#include "interpose/features/sleep/sleeping_arena.h"

/* What is asleep, or about to be or to wake. */
struct bfc_sleeping {
    struct bfc_sleeping_arena *arenas; /* NULL: nothing is */
    int file;                          /* the store; -1: there is none */
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

/* Sets the state that others see. */
void bfc_sleep_enter_state(enum bfc_sleep_state state);

/* Thaws all pages, forgets their contents, opens the gate, and is awake. */
void bfc_sleeping_end(void);

/* Forgets the arenas whose contexts have ended. */
void bfc_sleeping_drop_ended(void);

#endif
