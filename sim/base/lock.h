// The one lock of the stand-in, and what threads wait for under it.
//
// Everything in sim/ is guarded by this lock, which a driver call takes as it enters and gives back
// as it leaves; only the work of streams, host functions and latencies run without it. Lock order:
// there is no second lock. A forked child has a lock of its own.
#ifndef SIM_LOCK_H
#define SIM_LOCK_H

#include <pthread.h>
#include <stdbool.h>

void sim_lock_take(void); // only for calls, and for work that runs outside one
void sim_lock_give(void);
void sim_progress_broadcast(void);
void sim_progress_wait(void);
void sim_sleep_on(pthread_cond_t *condition); // gives the lock back meanwhile

// From the watch on, whether this process is a child of the one that began it.
bool sim_forks_watch(void);
bool sim_forked(void);

// A detached thread with all signals blocked.
bool sim_thread_start(void *(*serve)(void *), void *argument);

#endif
