/* 32 threads pass blocks to each other: whoever gets one reads what its maker wrote, and frees it.
 */
#include "tests/conformance/gpu.h"

enum { THREADS = 32, ROUNDS = 20, SLOTS = 16 };

struct parcel {
    void *block;
    size_t bytes;
    unsigned value;
};

static struct parcel slots[SLOTS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned wrong, handled;

/* Puts the parcel into a slot and takes what lay there. */
static struct parcel swap(unsigned slot, struct parcel parcel) {
    pthread_mutex_lock(&lock);
    struct parcel taken = slots[slot];
    slots[slot] = parcel;
    pthread_mutex_unlock(&lock);
    return taken;
}

static void open_parcel(struct parcel parcel) {
    if (!parcel.block)
        return;
    size_t bad = wrong_bytes(parcel.block, parcel.bytes, parcel.value);
    MUST(release(parcel.block));
    pthread_mutex_lock(&lock);
    wrong += bad != 0;
    handled++;
    pthread_mutex_unlock(&lock);
}

static void *pass_parcels(void *argument) {
    unsigned self = (unsigned)(uintptr_t)argument;
    use_device(0);
    CUstream stream = new_stream();
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct parcel parcel = {.bytes = 100 + (self * 7919 + i * 104729) % 50000,
                                .value = (self + i * 31) % 251};
        parcel.block = new_block(parcel.bytes);
        fill(stream, parcel.block, parcel.bytes, parcel.value);
        MUST(DRIVER(cuStreamSynchronize)(stream));
        open_parcel(swap((self + i) % SLOTS, parcel));
    }
    MUST(end_stream(stream));
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    use_device(0);
    kernel("fill");
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, pass_parcels, (void *)i);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < SLOTS; i++)
        open_parcel(swap(i, (struct parcel){0}));
    printf("parcels: %u, spoilt: %u\n", handled, wrong);
    return 0;
}
