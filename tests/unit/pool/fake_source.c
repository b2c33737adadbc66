/* A made-up device for tests. */
#include "tests/unit/pool/fake_source.h"

void fake_source_init(struct fake_source *fake, uint64_t capacity) {
    *fake = (struct fake_source){
        .capacity = capacity, .next = UINT64_C(0x7f0000000000), .reachable = UINT64_MAX};
    pthread_mutex_init(&fake->lock, NULL);
}

static enum bfc_reserve_result take(struct fake_source *fake, uint64_t bytes, bfc_addr *start) {
    fake->reserves++;
    if (fake->fail_reserve && !--fake->fail_reserve)
        return BFC_FAILED;
    if (fake->refuse_reserve) {
        fake->refuse_reserve--;
        return BFC_REFUSED;
    }
    if (bytes > fake->capacity - fake->taken || fake->count == 4096)
        return BFC_REFUSED;
    *start = fake->next;
    fake->next += bytes + fake->gap;
    fake->taken += bytes;
    fake->regions[fake->count++] = (struct fake_region){*start, bytes};
    return BFC_RESERVED;
}

static enum bfc_reserve_result reserve(void *context, uint64_t bytes, bfc_addr *start) {
    struct fake_source *fake = context;
    pthread_mutex_lock(&fake->lock);
    enum bfc_reserve_result result = take(fake, bytes, start);
    pthread_mutex_unlock(&fake->lock);
    return result;
}

static void give_back(struct fake_source *fake, bfc_addr start, uint64_t bytes) {
    fake->releases++;
    for (unsigned i = 0; i < fake->count; i++)
        if (fake->regions[i].start == start && fake->regions[i].bytes == bytes) {
            fake->regions[i] = fake->regions[--fake->count];
            fake->taken -= bytes;
            return;
        }
    fake->bad_releases++;
}

static void release(void *context, bfc_addr start, uint64_t bytes) {
    struct fake_source *fake = context;
    pthread_mutex_lock(&fake->lock);
    give_back(fake, start, bytes);
    pthread_mutex_unlock(&fake->lock);
}

static bfc_mark poll(void *context) {
    struct fake_source *fake = context;
    fake->polls++;
    return fake->completed;
}

static bfc_mark wait(void *context, bfc_mark mark, uint64_t timeout_ns) {
    struct fake_source *fake = context;
    fake->waits++;
    fake->last_wait_timeout = timeout_ns;
    if (mark <= fake->reachable && mark > fake->completed)
        fake->completed = mark;
    else if (timeout_ns != UINT64_MAX)
        fake->clock += timeout_ns;
    return fake->completed;
}

static uint64_t ask_neighbours(void *context, uint64_t bytes) {
    struct fake_source *fake = context;
    fake->asks++;
    uint64_t came = bytes < fake->neighbours ? bytes : fake->neighbours;
    fake->neighbours -= came;
    fake->capacity += came;
    return came;
}

static uint64_t now(void *context) {
    struct fake_source *fake = context;
    return fake->clock;
}

struct bfc_source fake_source_table(struct fake_source *fake) {
    return (struct bfc_source){.context = fake,
                               .reserve = reserve,
                               .release = release,
                               .poll = poll,
                               .wait = wait,
                               .ask_neighbours = ask_neighbours,
                               .now = now};
}
