// Numbers that are never given out again.
#include "sim/base/ids.h"

unsigned long long sim_next_context_id(void) {
    static unsigned long long next_id = 1;
    return next_id++;
}

unsigned long long sim_next_buffer_id(void) {
    static unsigned long long next_id = 1;
    return next_id++;
}
