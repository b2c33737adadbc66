/*
 * Asks for too much again and again, by a clock of its own that the library sees too: every 50 ms
 * for 10 s, then every second until 130 s have passed since the start, then once more after a
 * quiet minute and a half.
 */
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/integration/interpose/program.h"

static long long moved_on_ms;

int clock_gettime(clockid_t clock, struct timespec *time) {
    int result = (int)syscall(SYS_clock_gettime, clock, time);
    time->tv_sec += moved_on_ms / 1000;
    return result;
}

static void fail(long long after_ms) {
    CUdeviceptr block;
    moved_on_ms += after_ms;
    CHECK(cuMemAlloc(&block, (size_t)300 << 20) == CUDA_ERROR_OUT_OF_MEMORY ? CUDA_SUCCESS
                                                                            : CUDA_ERROR_UNKNOWN);
}

int main(void) {
    use_primary(0);
    for (int i = 0; i < 200; i++)
        fail(50);
    for (int i = 0; i < 120; i++)
        fail(1000);
    fail(90000);
    return 0;
}
