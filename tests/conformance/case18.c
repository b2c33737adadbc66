/* Pitched memory for widths 1 to 4096: rows are wide enough, and as far apart as natively. */
#include "tests/conformance/gpu.h"

int main(void) {
    unsigned long long digest = 14695981039346656037ull;
    bool wide = true, aligned = true;
    use_device(0);
    for (size_t width = 1; width <= 4096; width += width < 600 ? 1 : 61) {
        void *pointer = NULL;
        size_t pitch = 0;
        MUST(allocate_pitched(&pointer, &pitch, width, 3));
        wide &= pitch >= width;
        aligned &= (uintptr_t)pointer % 256 == 0;
        digest = (digest ^ pitch) * 1099511628211ull;
        MUST(release(pointer));
    }
    tell("every pitch is at least the width", wide);
    tell("every start is aligned to 256", aligned);
    printf("~ digest of the pitches %016llx\n", digest);
    return 0;
}
