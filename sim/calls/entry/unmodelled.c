// Functions that are not modelled: exported, each at an address of its own, so that look-ups find
// what they find in a real driver; a call answers CUDA_ERROR_NOT_SUPPORTED. This file does without
// cuda.h, whose prototypes these definitions ignore on purpose.
enum { NOT_SUPPORTED = 801 };

#define SIM_UNMODELLED(name)                                                                       \
    __attribute__((visibility("default"))) int name(void);                                         \
    int name(void) {                                                                               \
        return NOT_SUPPORTED;                                                                      \
    }
#include "sim/calls/entry/unmodelled.inc"
