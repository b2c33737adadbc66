// What the work under way has reached.
//
// A real device faults when memory is unmapped under a running kernel. Here the kernel is host code
// that holds a pointer: it is told at its end that it faulted. Spans are kept from the moment when
// they are reached until their piece of work ends; neighbours become one. O(spans under way).
// Guarded by the lock.
#include "sim/memory/flight.h"

#include "sim/device/device.h"
#include "sim/device/thread.h"

#include <stdio.h>
#include <stdlib.h>

struct flight {
    struct flight *next;
    const struct sim_thread *thread;
    uintptr_t start, end;
    bool broken;
};

static struct flight *flights; // the latest first

static bool touches(const struct flight *flight, uintptr_t start, uintptr_t end) {
    return start <= flight->end && flight->start <= end;
}

static bool overlaps(const struct flight *flight, uintptr_t start, uintptr_t end) {
    return start < flight->end && flight->start < end;
}

static bool widen(uintptr_t start, uintptr_t end) {
    for (struct flight *f = flights; f != NULL; f = f->next) {
        if (f->thread == sim_self() && touches(f, start, end)) {
            f->start = start < f->start ? start : f->start;
            f->end = end > f->end ? end : f->end;
            return true;
        }
    }
    return false;
}

void sim_flight_note(uintptr_t start, size_t size) {
    if (sim_self()->running == NULL || size == 0 || widen(start, start + size)) {
        return;
    }
    struct flight *flight = malloc(sizeof *flight);
    if (flight == NULL) {
        fputs("sim: out of host memory\n", stderr);
        abort();
    }
    *flight =
        (struct flight){.next = flights, .thread = sim_self(), .start = start, .end = start + size};
    flights = flight;
}

bool sim_flight_over(uintptr_t start, size_t size) {
    const struct flight *flight = flights;
    while (flight != NULL && !overlaps(flight, start, start + size)) {
        flight = flight->next;
    }
    return flight != NULL;
}

bool sim_flight_break(uintptr_t start, size_t size, unsigned devices) {
    for (struct flight *f = flights; f != NULL; f = f->next) {
        if (overlaps(f, start, start + size) &&
            (devices & 1u << f->thread->running->device->ordinal) != 0) {
            f->broken = true;
        }
    }
    return sim_flight_over(start, size);
}

bool sim_flight_end(void) {
    bool broken = false;
    for (struct flight **link = &flights; *link != NULL;) {
        struct flight *flight = *link;
        if (flight->thread != sim_self()) {
            link = &flight->next;
            continue;
        }
        broken = broken || flight->broken;
        *link = flight->next;
        free(flight);
    }
    return broken;
}
