// What the work under way has reached, so that memory taken from under it is noticed. Guarded by
// the lock.
#ifndef SIM_FLIGHT_H
#define SIM_FLIGHT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// This thread's work uses a span from now on; without work, nothing is noted.
void sim_flight_note(uintptr_t start, size_t size);
// A span is lost to the work of these devices (a bit each). Whether any work used it.
bool sim_flight_break(uintptr_t start, size_t size, unsigned devices);
bool sim_flight_over(uintptr_t start, size_t size);
// This thread's piece of work is over. Whether it lost something that it used.
bool sim_flight_end(void);

#endif
