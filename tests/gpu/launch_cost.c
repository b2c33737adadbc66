// What a launch of a kernel that does nothing costs the thread that launches it, in nanoseconds:
// the median of many batches, each so small that the driver's queue takes it without waiting.
// usage: launch_cost KERNELS_PTX
#include "tests/gpu/measuring.h"

enum { BATCHES = 400, LAUNCHES = 200 };

int main(int count, char **arguments) {
    static uint64_t took[BATCHES];
    if (count != 2)
        return 1;
    begin_with(arguments[1]);
    CUstream stream = new_stream();
    for (size_t batch = 0; batch < BATCHES; batch++) {
        uint64_t begin = now();
        for (int i = 0; i < LAUNCHES; i++)
            start_spin_of(stream, 0);
        took[batch] = (now() - begin) / LAUNCHES;
        MUST(cuStreamSynchronize(stream));
    }
    printf("%lld\n", (long long)median(took, BATCHES));
    return 0;
}
