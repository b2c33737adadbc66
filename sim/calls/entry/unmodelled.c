// Functions that are not modelled: exported, each at an address of its own, so that look-ups find
// what they find in a real driver; a call is counted and answers CUDA_ERROR_NOT_SUPPORTED. This
// file does without cuda.h, whose prototypes these definitions ignore on purpose.
#include "sim/border/stats.h"

#include "sim/base/call.h"

enum { NOT_SUPPORTED = 801 };

// The answer lies on the stack, so that the function begins with a frame (sim/meson.build: why).
#define SIM_UNMODELLED(symbol)                                                                     \
    __attribute__((visibility("default"))) int symbol(void);                                       \
    int symbol(void) {                                                                             \
        static struct sim_call call = {.name = #symbol, .unmodelled = true};                       \
        volatile int answer = NOT_SUPPORTED;                                                       \
        sim_stats_count(&call);                                                                    \
        return answer;                                                                             \
    }
#include "sim/calls/entry/unmodelled.inc"
