/* A made-up device for tests. */
#include "tests/unit/pool/fake_upstream.h"
#include "base/atomic.h"

#define HOUR_NS (UINT64_C(3600) * 1000 * 1000 * 1000)

void fake_upstream_init(struct fake_upstream *fake, uint64_t capacity) {
    *fake = (struct fake_upstream){
        .capacity = capacity, .next = UINT64_C(0x7f0000000000), .reachable = UINT64_MAX};
    pthread_mutex_init(&fake->lock, NULL);
}

/* Is this, the count-th call of its kind, the one that goes wrong? */
static bool goes_wrong(const struct fake_upstream *fake, enum fake_call call, unsigned count) {
    return fake->fault.call == call && fake->fault.at == count;
}

/* Refuses, fails, or answers what is no answer. */
static enum bfc_reserve_result take_wrongly(struct fake_upstream *fake, bfc_addr *start) {
    static const enum bfc_reserve_result answers[FAKE_WAYS] = {BFC_REFUSED, BFC_FAILED,
                                                               (enum bfc_reserve_result)99};
    *start = UINT64_C(0xdead00000000);
    return answers[fake->fault.way];
}

static enum bfc_reserve_result take(struct fake_upstream *fake, uint64_t bytes, bfc_addr *start) {
    if (goes_wrong(fake, FAKE_RESERVE, ++fake->reserves))
        return take_wrongly(fake, start);
    if (fake->fail_reserve && !--fake->fail_reserve)
        return BFC_FAILED;
    if (fake->refuse_reserve) {
        fake->refuse_reserve--;
        return BFC_REFUSED;
    }
    if (fake->taken > fake->capacity || bytes > fake->capacity - fake->taken || fake->count == 4096)
        return BFC_REFUSED;
    *start = fake->next;
    fake->next += bytes + fake->gap;
    fake->taken += bytes;
    fake->regions[fake->count++] = (struct fake_region){*start, bytes};
    return BFC_RESERVED;
}

static enum bfc_reserve_result reserve(void *context, uint64_t bytes, bfc_addr *start,
                                       struct bfc_ask *ask) {
    (void)ask;
    struct fake_upstream *fake = context;
    pthread_mutex_lock(&fake->lock);
    enum bfc_reserve_result result = take(fake, bytes, start);
    pthread_mutex_unlock(&fake->lock);
    return result;
}

/* What was given back is lost to the device, or there twice, or it took an hour. */
static void give_back_wrongly(struct fake_upstream *fake, uint64_t bytes) {
    if (fake->fault.way == 0)
        fake->capacity -= bytes;
    else if (fake->fault.way == 1)
        fake->capacity += bytes;
    else
        fake->clock += HOUR_NS;
}

static void give_back(struct fake_upstream *fake, bfc_addr start, uint64_t bytes) {
    if (goes_wrong(fake, FAKE_RELEASE, ++fake->releases))
        give_back_wrongly(fake, bytes);
    for (unsigned i = 0; i < fake->count; i++)
        if (fake->regions[i].start == start && fake->regions[i].bytes == bytes) {
            fake->regions[i] = fake->regions[--fake->count];
            fake->taken -= bytes;
            return;
        }
    fake->bad_releases++;
}

static bool release(void *context, bfc_addr start, uint64_t bytes, int *error) {
    (void)error;
    struct fake_upstream *fake = context;
    pthread_mutex_lock(&fake->lock);
    bool refused = fake->refuse_release > 0;
    if (refused)
        fake->refuse_release--;
    else
        give_back(fake, start, bytes);
    pthread_mutex_unlock(&fake->lock);
    return !refused;
}

static bfc_fence tell(struct fake_upstream *fake, bfc_fence fence) {
    bfc_fence most =
        fence == BFC_DEFERRED_FENCE ? fence - 1 : fence; /* deferred has no fence yet */
    if (most > fake->told)
        fake->told = most;
    return fence;
}

/* Goes back to nothing, says that all is complete, or fences that were never drawn. */
static bfc_fence poll_wrongly(const struct fake_upstream *fake) {
    const bfc_fence answers[FAKE_WAYS] = {0, UINT64_MAX, fake->completed + 1000};
    return answers[fake->fault.way];
}

static bfc_fence poll(void *context) {
    struct fake_upstream *fake = context;
    bool wrong = goes_wrong(fake, FAKE_POLL, ++fake->polls);
    return tell(fake, wrong ? poll_wrongly(fake) : fake->completed);
}

/* Returns at once: with nothing, with everything, or with one fence too few. */
static bfc_fence wait_wrongly(const struct fake_upstream *fake, bfc_fence fence) {
    const bfc_fence answers[FAKE_WAYS] = {0, UINT64_MAX, fence - 1};
    return answers[fake->fault.way];
}

static bfc_fence wait(void *context, bfc_fence fence, uint64_t timeout_ns) {
    struct fake_upstream *fake = context;
    fake->last_wait_timeout = timeout_ns;
    if (goes_wrong(fake, FAKE_WAIT, ++fake->waits))
        return tell(fake, wait_wrongly(fake, fence));
    if (fence <= fake->reachable && fence > fake->completed)
        fake->completed = fence;
    else if (timeout_ns != UINT64_MAX)
        fake->clock += timeout_ns;
    return tell(fake, fake->completed);
}

/* An hour ahead from here on, at the end of time, or back at its beginning. */
static uint64_t tell_wrongly(struct fake_upstream *fake) {
    fake->clock += fake->fault.way == 0 ? HOUR_NS : 0;
    const uint64_t answers[FAKE_WAYS] = {fake->clock, UINT64_MAX, 0};
    return answers[fake->fault.way];
}

static uint64_t now(void *context) {
    struct fake_upstream *fake = context;
    return goes_wrong(fake, FAKE_NOW, bfc_add_fetch_relaxed(&fake->nows, 1)) ? tell_wrongly(fake)
                                                                             : fake->clock;
}

struct bfc_upstream fake_upstream_table(struct fake_upstream *fake) {
    return (struct bfc_upstream){.context = fake,
                                 .reserve = reserve,
                                 .release = release,
                                 .poll = poll,
                                 .wait = wait,
                                 .now = now};
}
