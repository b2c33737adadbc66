/*
 * Blocks of all sizes that come and go at random, up to nine tenths of a device: none is refused,
 * though a page with a byte in use cannot move. The environment variable OTHERS_MIB says how much
 * of the device is held by others.
 */
#include "tests/conformance/gpu.h"

enum { STEPS = 3000, BLOCKS = 1000, SEEDS = 3 };
static const size_t most = 460 * MIB;

static struct {
    void *start;
    size_t bytes;
} blocks[BLOCKS];
static unsigned count;
static size_t live;
static uint64_t state;

static unsigned draw(unsigned below) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(state >> 33) % below;
}

static bool add(size_t bytes) {
    if (allocate(&blocks[count].start, bytes) != CUDA_SUCCESS)
        return false;
    blocks[count++].bytes = bytes;
    live += bytes;
    return true;
}

static void remove_any(void) {
    unsigned i = draw(count);
    MUST(release(blocks[i].start));
    live -= blocks[i].bytes;
    blocks[i] = blocks[--count];
}

static int refused_of(uint64_t seed) {
    int refused = 0;
    state = seed;
    for (int i = 0; i < STEPS; i++) {
        size_t bytes = (1 + draw(40)) * MIB;
        bool fits = count < BLOCKS && live + bytes <= most;
        bool failed = fits && !add(bytes);
        refused += failed;
        if (!fits || failed)
            remove_any();
    }
    while (count)
        remove_any();
    return refused;
}

int main(void) {
    const char *held = getenv("OTHERS_MIB");
    CUmemAllocationProp kind = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
    };
    CUmemGenericAllocationHandle others;
    int refused = 0;
    use_device(0);
    if (held)
        MUST(cuMemCreate(&others, (size_t)atoi(held) * MIB, &kind, 0));
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        refused += refused_of(seed);
    printf("refused: %d\n", refused);
    return refused != 0;
}
