/*
 * Sleep: a job that does nothing gives all its pages back to the device, and wakes by itself.
 *
 * States, of the whole process: awake, falling asleep, asleep, waking. One thread at a time has the
 * *turn* (a lock, turn.h) and changes the state; it alone uses the list of what is asleep.
 * A thread of the library puts the process to sleep (sleeper_thread.c); whichever thread needs the
 * memory first wakes it.
 *
 * Falling asleep (a *fall*), in this order. Until the last step the contents are where they were.
 * Any refusal, any call that needs memory, a context's end or the process's exit ends the fall; all
 * that the pools have lost then is free memory, which they can get again:
 * 1 bfc_only_stream_close is called (gate/only_stream.h). From then on every submission, and every
 *   other call for which memory must be awake (bfc_stay_awake), waits for the turn. Such a wait
 *   ends the fall, unless the fall is for a job that waits for memory (bfc_fall_asleep, `forced`).
 * 2 The fall waits for threads inside such calls, and ends if a capture is under way. So from then
 *   on nothing is submitted.
 * 3 The fall waits, by fences and for a limited time, for the work of all contexts that may use the
 *   memory.
 * 4 Ready memory goes back. The pages are frozen (pool/pages.h): a pool that has to grow waits for
 *   the turn as well. Frees, and allocations that free blocks can serve, go on even while asleep.
 * 5 The contents of all pages go to the store.
 * 6 Each page is noted as asleep, unmapped and released. A page that the driver does not unmap
 *   stays where it is. At a context's end, pages that are not noted as asleep are given back.
 *
 * Waking: all pages are made, or none; if the device is full the last resorts are tried, as for an
 * allocation. Then they are mapped at their old addresses, and get access and their contents; the
 * pools may move them again, and submissions go on. If the driver refuses anything, the new pages
 * go back, and the process is asleep as before: the call that needed the memory gets the error
 * (BFC_ASLEEP, if it is an allocation), and the next such call tries again. If a wake fails because
 * a context is about to end, it waits for that end, and then wakes the other contexts' memory.
 *
 * What stays on the device: pinned pages (exports, registrations), memory of contexts that others
 * have access to, regions that are not of pages, and memory outside the pools. When a context ends,
 * the stored contents of its memory are dropped. A forked child neither falls asleep nor wakes.
 *
 * Lock order: the turn; the lock of only_stream.c; a pool's lock for its pages; a pool's lock. A
 * thread that waits for the turn holds none of these.
 *
 * A tool's callback may call us in the middle of a driver call of a fall or wake; so neither of the
 * last two locks is held in these driver calls. If such a callback, or a signal handler in the
 * thread that has the turn, makes a call that needs memory awake, the call gets an error. If a
 * callback in a submission of the program makes such a call, its wait for the turn ends any fall,
 * even a forced one, since step 2 waits for that submission.
 */
#ifndef BFC_INTERPOSE_SLEEP_H
#define BFC_INTERPOSE_SLEEP_H

#include "interpose/arena/state.h"
#include "layout/segment.h"

/* The index in arena->features of the driver calls for an arena's pages (struct bfc_page_calls);
 * that entry is NULL for an arena without pages. */
extern unsigned bfc_sleep_slot;

/* The part of the published segment that describes sleep; if no segment is published, a variable of
 * the process in its place. */
struct bfc_segment_sleep *bfc_sleep_told(void);

enum bfc_sleep_state bfc_sleep_state(void);

/* Puts the process to sleep. `forced`: even if the program goes on working; its calls then wait.
 * False: the process is awake, and `why` in the published segment says why. To be called by a
 * thread of the library, between bfc_background_begin and bfc_background_end. */
bool bfc_fall_asleep(bool forced);

/* Wakes the process, if it is not awake. Returns CUDA_SUCCESS, or the error with which a call that
 * needs the memory fails. */
CUresult bfc_wake_up(void);

/* Forgets the sleeping pages of contexts that have ended. If another thread has the lock of turn.h,
 * that thread does it when it releases the lock. */
void bfc_sleep_forget_ended(void);

/* Starts the thread of sleeper_thread.c, if BFC_SLEEP_IDLE or BFC_SLEEP_QUANTUM is set. */
void bfc_sleeper_begin(const struct bfc_process *process, struct bfc_segment_header *published);

/* Has the thread of sleeper_thread.c look at the requests in the published segment; starts that
 * thread if it does not run. */
void bfc_sleeper_asked(struct bfc_segment_header *published);

/* To be the function `serve` of a last resort (struct bfc_resort): asks the user's other jobs on
 * the device to sleep, the longest idle first, until the allocation is served. */
bool bfc_beg_neighbours(struct bfc_call *call);

#endif
