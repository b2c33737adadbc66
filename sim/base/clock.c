// The time, and pauses.
#include "sim/base/clock.h"

#include <time.h>

void sim_pause(unsigned us) {
    if (us == 0) {
        return;
    }
    double until = sim_now_ms() + us / 1000.0;
    // nanosleep overshoots by some 60 µs, so short pauses and the ends of long ones are spun.
    if (us > 150) {
        struct timespec rest = {.tv_sec = (us - 100) / 1000000,
                                .tv_nsec = (long)((us - 100) % 1000000) * 1000};
        nanosleep(&rest, NULL);
    }
    while (sim_now_ms() < until) {
    }
}

double sim_now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}
