// What is counted, apart from the calls by name.
#include "sim/base/counts.h"

struct sim_counts sim_counts;

void sim_count_wait(bool blocked) {
    sim_counts.waits++;
    sim_counts.blocked_waits += blocked;
}
