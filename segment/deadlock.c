#include "segment/deadlock.h"

#include <string.h>

#include "base/numbers.h"

enum { MOST = 64 };

/* All processes that wait for memory. `ends[i]` is set for a process that can be served: its wait
 * ends, and then it is assumed to free all its memory. */
struct scene {
    const struct bfc_claimant *all;
    size_t count;
    bool ends[MOST];
};

static uint64_t in_use_on(const struct bfc_claimant *process, const uint8_t uuid[16]) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < process->holdings; i++)
        if (memcmp(process->holding[i].device_uuid, uuid, 16) == 0)
            bytes = bfc_add_saturating(bytes, process->holding[i].in_use);
    return bytes;
}

/* Returns when the last of the process's waiting threads began to wait. */
static uint64_t age_of(const struct bfc_claimant *process) {
    uint64_t since = 0;
    for (uint32_t slot = 0; slot < BFC_WAITERS; slot++)
        if (process->claim[slot].bytes)
            since = bfc_max(since, process->claim[slot].since_ns);
    return since;
}

static bool is_younger(const struct bfc_claimant *a, const struct bfc_claimant *b) {
    uint64_t of_a = age_of(a), of_b = age_of(b);
    return of_a != of_b ? of_a > of_b : a->pid > b->pid;
}

/* A thread of `process` waits for memory of a device by `claim`. Returns how many bytes can become
 * free there: all bytes of the device, except what is in use by processes whose waits cannot end.
 * If `until` is not NULL, assumes that `until` and all processes that began to wait later free
 * their memory too. */
static uint64_t reach_of(const struct scene *scene, const struct bfc_claimant *process,
                         const struct bfc_claim *claim, const struct bfc_claimant *until) {
    const struct bfc_holding *there = &process->holding[claim->holding];
    uint64_t reach = there->total;
    for (size_t i = 0; i < scene->count; i++)
        if (!scene->ends[i] && !(until && !is_younger(until, &scene->all[i])))
            reach = bfc_subtract_saturating(reach, in_use_on(&scene->all[i], there->device_uuid));
    return reach;
}

static bool can_be_served(const struct scene *scene, const struct bfc_claimant *process,
                          const struct bfc_claimant *until) {
    for (uint32_t slot = 0; slot < BFC_WAITERS; slot++) {
        const struct bfc_claim *claim = &process->claim[slot];
        if (claim->bytes && claim->bytes <= reach_of(scene, process, claim, until))
            return true;
    }
    return false;
}

/* Sets `ends` for all processes whose waits can end. Repeats until nothing changes, since the
 * memory that a served process frees may serve another process. */
static void serve_all(struct scene *scene) {
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < scene->count; i++)
            if (!scene->ends[i] && can_be_served(scene, &scene->all[i], NULL))
                more = scene->ends[i] = true;
    }
}

/* Whether this process is in the way of one that began to wait earlier: whether that one could be
 * served if this process, and all that began to wait after this process, gave up their memory. */
static bool is_in_the_way(const struct scene *scene, const struct bfc_claimant *process) {
    for (size_t i = 0; i < scene->count; i++)
        if (!scene->ends[i] && is_younger(process, &scene->all[i]) &&
            can_be_served(scene, &scene->all[i], process))
            return true;
    return false;
}

bool bfc_deadlock_is_ours(const struct bfc_claimant *all, size_t count, size_t own) {
    struct scene scene = {.all = all, .count = count};
    if (count > MOST)
        return false;
    serve_all(&scene);
    if (scene.ends[own] || !is_in_the_way(&scene, &all[own]))
        return false;
    for (size_t i = 0; i < count; i++)
        if (!scene.ends[i] && is_younger(&all[i], &all[own]) && is_in_the_way(&scene, &all[i]))
            return false;
    return true;
}
