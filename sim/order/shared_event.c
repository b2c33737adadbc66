// Events of several processes: one file in memory for each, which every process maps.
//
// A record completes in the process that made it. A process that ends with work under way leaves
// its record incomplete.
#include "sim/order/shared_event.h"

#include "sim/base/clock.h"
#include "sim/base/lock.h"
#include "sim/base/options.h"
#include "sim/base/work.h"
#include "sim/kernel.h"
#include "sim/order/stream.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

// Records may complete out of order, so each has a place of its own for as long as matters.
enum { RECORDS = 256 };

struct page {
    uint64_t recorded, completed[RECORDS]; // the highest number at each place
};

struct sim_shared_event {
    unsigned references;
    int file;
    struct page *page;
};

static struct sim_shared_event *map_file(int file) {
    struct sim_shared_event *event = calloc(1, sizeof *event);
    void *page = MAP_FAILED;
    if (event != NULL && file >= 0) {
        page = mmap(NULL, sizeof *event->page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    }
    if (page == MAP_FAILED) {
        free(event);
        if (file >= 0) {
            close(file);
        }
        return NULL;
    }
    *event = (struct sim_shared_event){.references = 1, .file = file, .page = page};
    return event;
}

struct sim_shared_event *sim_shared_event_new(void) {
    int file = memfd_create("sim-event", MFD_CLOEXEC);
    if (file >= 0 && ftruncate(file, sizeof(struct page)) != 0) {
        close(file);
        return NULL;
    }
    return map_file(file);
}

struct sim_shared_event *sim_shared_event_open(int32_t pid, int32_t file) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, file);
    return map_file(open(path, O_RDWR | O_CLOEXEC));
}

int sim_shared_event_file(const struct sim_shared_event *event) {
    return event->file;
}

void sim_shared_event_hold(struct sim_shared_event *event) {
    event->references++;
}

void sim_shared_event_release(struct sim_shared_event *event) {
    if (event != NULL && --event->references == 0) {
        munmap(event->page, sizeof *event->page);
        close(event->file);
        free(event);
    }
}

uint64_t sim_shared_event_record(struct sim_shared_event *event) {
    return __atomic_add_fetch(&event->page->recorded, 1, __ATOMIC_ACQ_REL);
}

static uint64_t *place(const struct sim_shared_event *event, uint64_t record) {
    return &event->page->completed[record % RECORDS];
}

void sim_shared_event_complete(struct sim_shared_event *event, uint64_t record) {
    __atomic_store_n(place(event, record), record, __ATOMIC_RELEASE);
}

static bool complete(const struct sim_shared_event *event, uint64_t record) {
    return __atomic_load_n(place(event, record), __ATOMIC_ACQUIRE) >= record;
}

static uint64_t latest(const struct sim_shared_event *event) {
    return __atomic_load_n(&event->page->recorded, __ATOMIC_ACQUIRE);
}

bool sim_shared_event_ready(const struct sim_shared_event *event) {
    return complete(event, latest(event));
}

void sim_shared_event_finish(struct sim_shared_event *event) {
    uint64_t record = latest(event);
    sim_shared_event_hold(event);
    while (!complete(event, record)) {
        sim_lock_give();
        sim_pause(20);
        sim_lock_take();
    }
    sim_shared_event_release(event);
}

// ---- a stream's wait ----

struct wait {
    struct sim_work work;
    struct sim_shared_event *event;
    uint64_t record;
};

static CUresult run_wait(struct sim_work *work) {
    const struct wait *wait = (const struct wait *)work;
    while (!complete(wait->event, wait->record)) {
        if (sim_options.step != 0) {
            return (CUresult)SIM_AGAIN;
        }
        sim_pause(20);
    }
    return CUDA_SUCCESS;
}

static void drop_wait(struct sim_work *work) {
    sim_shared_event_release(((struct wait *)work)->event);
    free(work);
}

static const struct sim_work_type wait_type = {.run = run_wait, .drop = drop_wait};

CUresult sim_shared_event_await(struct sim_shared_event *event, struct CUstream_st *stream) {
    struct wait *wait = calloc(1, sizeof *wait);
    if (wait == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    wait->work.type = &wait_type;
    wait->event = event;
    wait->record = latest(event);
    sim_shared_event_hold(event);
    return sim_submit(stream, &wait->work);
}
