// A device that goes by driver calls instead of time (SIM_STEP): its streams have no threads.
//
// A piece of work that may begin is due some calls later, as the seed draws, and is done by a
// thread that makes a driver call then. Who waits goes ahead to what is due next, so nobody sleeps,
// and with one thread every run of a seed is the same. A kernel that waits for the host is asked
// again at later calls. A thread looks on, should the host wait for the device without calling.
// O(streams with work) when something is due, else O(1). Guarded by the lock, except while a piece
// runs.
#include "sim/order/step.h"

#include "sim/base/lock.h"
#include "sim/base/options.h"
#include "sim/base/random.h"
#include "sim/device/thread.h"
#include "sim/order/mark.h"
#include "sim/order/queue.h"
#include "sim/order/run.h"

#include <time.h>

enum { SOON = 4, LOOK_NS = 5000000 };

static struct CUstream_st *busy; // streams with work
static uint64_t now = 1;         // calls so far, and what waits went ahead
static uint64_t quiet_until;     // nothing is due before, unless this is reset
static unsigned blocked;         // streams whose first piece waits for the host

static void look_again(void) {
    quiet_until = 0;
}

static void *look_on(void *unused) {
    uint64_t seen = 0;
    (void)unused;
    for (;;) {
        nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
        sim_lock_take();
        bool idle = now == seen;
        seen = now;
        if (idle) {
            sim_step();
            while (sim_step_ahead()) {
            }
        }
        sim_lock_give();
    }
    return NULL;
}

bool sim_step_begin(struct CUstream_st *stream) {
    static bool looking;
    looking = looking || sim_thread_start(look_on, NULL);
    stream->next_busy = busy;
    busy = stream;
    stream->due = 0;
    look_again();
    return looking;
}

static void take_off(struct CUstream_st *stream) {
    struct CUstream_st **link = &busy;
    while (*link != stream) {
        link = &(*link)->next_busy;
    }
    *link = stream->next_busy;
    stream->worker = false;
    if (stream->closing) {
        sim_stream_leave_context(stream);
        sim_stream_release(stream);
    }
}

// Mostly soon, a quarter later, and a few so late that waits for other work do not reach them.
static uint64_t draw_due(const struct CUstream_st *stream) {
    uint64_t draw = sim_mix(sim_options.seed ^ sim_mix(stream->id << 32 | stream->head->number));
    uint64_t most = draw % 16 == 0  ? 64 * (uint64_t)sim_options.step
                    : draw % 4 == 0 ? sim_options.step
                                    : SOON;
    return now + sim_mix(draw) % most;
}

static struct CUstream_st *first_due(void) {
    struct CUstream_st *first = NULL;
    for (struct CUstream_st *s = busy; s != NULL; s = s->next_busy) {
        if (s->running || s->blocked || !sim_marks_complete(&s->head->waits)) {
            continue;
        }
        if (s->due == 0) {
            s->due = draw_due(s);
        }
        if (first == NULL || s->due < first->due) {
            first = s;
        }
    }
    quiet_until = first != NULL ? first->due : UINT64_MAX;
    return first;
}

static void run_first(struct CUstream_st *stream) {
    stream->running = true;
    stream->blocked = !sim_stream_work(stream);
    stream->running = false;
    stream->due = 0;
    blocked += stream->blocked;
    look_again();
    if (stream->head == NULL) {
        take_off(stream);
    }
}

static void ask_again(void) {
    for (struct CUstream_st *s = busy; s != NULL && blocked > 0; s = s->next_busy) {
        blocked -= s->blocked;
        s->blocked = false;
    }
    look_again();
}

void sim_step(void) {
    if (sim_self()->running != NULL) {
        return; // a host function calls
    }
    now++;
    if (blocked > 0) {
        ask_again();
    }
    while (now >= quiet_until) {
        struct CUstream_st *stream = first_due();
        if (stream == NULL || stream->due > now) {
            return;
        }
        run_first(stream);
    }
}

bool sim_step_ahead(void) {
    struct CUstream_st *stream = sim_self()->running == NULL ? first_due() : NULL;
    if (stream == NULL) {
        return false;
    }
    now = stream->due > now ? stream->due : now;
    run_first(stream);
    return true;
}
