/*
 * Asking neighbours (neighbours.h finds them) whose helper threads live, those that cache most on
 * our device first, the next one when enough has not come after a moment.
 *
 * What stands in a segment is another process's word: sizes are compared with our own constants,
 * and all that is believed is how much to ask for.
 */
#include "interpose/yield.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "interpose/clock.h"
#include "interpose/neighbours.h"
#include "interpose/shared_folder.h"

#define ALL_NS ((uint64_t)90 * 1000 * 1000)
#define EACH_NS ((uint64_t)25 * 1000 * 1000)
#define LOOK_NS 200000
#define NEIGHBOURS_MOST 64

/* ---- one neighbour's segment ---- */

static struct bfc_segment_header *map_file(int file) {
    if (!bfc_file_is_private(file) || lseek(file, 0, SEEK_END) != (off_t)BFC_SEGMENT_SIZE)
        return NULL;
    void *memory = mmap(NULL, BFC_SEGMENT_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static bool is_usable(const struct bfc_segment_header *header) {
    uint32_t owner = __atomic_load_n(&header->owner, __ATOMIC_ACQUIRE);
    return __atomic_load_n(&header->magic, __ATOMIC_ACQUIRE) == BFC_SEGMENT_MAGIC &&
           header->version == BFC_SEGMENT_VERSION && header->total_size == BFC_SEGMENT_SIZE &&
           header->pool_size == sizeof(struct bfc_segment_pool) && (owner & FUTEX_TID_MASK) &&
           !(owner & FUTEX_OWNER_DIED);
}

/* Its settings, as it published them. */
static bool yields(const struct bfc_segment_header *header) {
    return !memmem(header->configuration, sizeof header->configuration, "BFC_YIELD=0", 11);
}

static struct bfc_segment_header *open_neighbour(int pid) {
    char path[sizeof BFC_SHARED_FOLDER + 96];
    snprintf(path, sizeof path, BFC_SHARED_FOLDER BFC_SEGMENT_NAME_FORMAT, getuid(),
             (unsigned long)bfc_pid_namespace(), pid);
    int file = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    struct bfc_segment_header *header = file < 0 ? NULL : map_file(file);
    if (file >= 0)
        close(file);
    if (header && is_usable(header) && yields(header))
        return header;
    if (header)
        munmap(header, BFC_SEGMENT_SIZE);
    return NULL;
}

/* What it caches on other devices than ours. */
static uint64_t cached_elsewhere(const struct bfc_segment_header *header,
                                 const struct bfc_domain *domain) {
    const struct bfc_segment_pool *pools =
        (const struct bfc_segment_pool *)(const void *)((const char *)header +
                                                        BFC_SEGMENT_POOLS_OFFSET);
    uint64_t bytes = 0;
    for (unsigned i = 0; i < BFC_SEGMENT_POOLS; i++)
        if (__atomic_load_n(&pools[i].state, __ATOMIC_ACQUIRE) == BFC_POOL_ACTIVE &&
            memcmp(pools[i].device_uuid, domain->section->device_uuid,
                   sizeof pools[i].device_uuid) != 0)
            bytes += __atomic_load_n(&pools[i].stats.clean, __ATOMIC_RELAXED) +
                     __atomic_load_n(&pools[i].stats.dirty, __ATOMIC_RELAXED);
    return bytes;
}

/* ---- asking ---- */

static void add_bytes(uint64_t *word, uint64_t bytes) {
    uint64_t before = __atomic_load_n(word, __ATOMIC_RELAXED), after;
    do
        after = before > UINT64_MAX - bytes ? UINT64_MAX : before + bytes;
    while (!__atomic_compare_exchange_n(word, &before, after, true, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED));
}

/* It did not answer: when it runs again, nobody waits for this any more. */
static void withdraw(uint64_t *word, uint64_t bytes) {
    uint64_t before = __atomic_load_n(word, __ATOMIC_RELAXED), after;
    do
        after = before > bytes ? before - bytes : 0;
    while (!__atomic_compare_exchange_n(word, &before, after, true, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED));
}

/* A neighbour that was asked. One gives back from any of its devices: what it caches on others than
 * ours is asked for on top. */
struct asked {
    struct bfc_segment_header *header;
    uint64_t bytes, elsewhere, before;
    uint32_t request;
};

static bool ask(struct asked *asked, const struct bfc_domain *domain, int pid, uint64_t bytes) {
    struct bfc_segment_header *header = open_neighbour(pid);
    if (!header)
        return false;
    uint64_t elsewhere = cached_elsewhere(header, domain);
    *asked = (struct asked){.header = header, .bytes = bytes + elsewhere, .elsewhere = elsewhere};
    asked->before = __atomic_load_n(&header->released_bytes, __ATOMIC_ACQUIRE);
    add_bytes(&header->request_bytes, asked->bytes);
    asked->request = __atomic_add_fetch(&header->request, 1, __ATOMIC_ACQ_REL);
    syscall(SYS_futex, &header->request, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    return true;
}

static bool is_served(const struct asked *asked) {
    uint32_t served = __atomic_load_n(&asked->header->request_served, __ATOMIC_ACQUIRE);
    return (int32_t)(served - asked->request) >= 0 || !is_usable(asked->header);
}

static uint64_t came_from(const struct asked *asked) {
    uint64_t all =
        __atomic_load_n(&asked->header->released_bytes, __ATOMIC_ACQUIRE) - asked->before;
    return all > asked->elsewhere ? all - asked->elsewhere : 0;
}

static uint64_t came_from_all(const struct asked *asked, size_t count) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += came_from(&asked[i]);
    return bytes;
}

/* Until this neighbour has answered or its time is up, or enough came from all of them. */
static void wait_a_while(const struct asked *asked, size_t count, uint64_t wanted, uint64_t until) {
    const struct timespec pause = {.tv_nsec = LOOK_NS};
    while (!is_served(&asked[count - 1]) && bfc_now_ns() < until &&
           came_from_all(asked, count) < wanted)
        nanosleep(&pause, NULL);
}

/* After the last one was asked: the slow ones may still answer. */
static void wait_for_slow(const struct asked *asked, size_t count, uint64_t wanted,
                          uint64_t deadline) {
    for (size_t i = 0; i < count; i++)
        wait_a_while(asked, i + 1, wanted, deadline);
}

static void let_go(struct asked *asked, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (!is_served(&asked[i]))
            withdraw(&asked[i].header->request_bytes, asked[i].bytes);
        munmap(asked[i].header, BFC_SEGMENT_SIZE);
    }
}

/* What the device lacks for these bytes. */
static uint64_t missing(uint64_t bytes) {
    const struct bfc_driver *driver = bfc_driver();
    size_t free_bytes, total;
    if (!driver->cuMemGetInfo_v2 || driver->cuMemGetInfo_v2(&free_bytes, &total) != CUDA_SUCCESS ||
        free_bytes >= bytes)
        return bytes;
    return bytes - free_bytes;
}

/* The one that caches most is asked first, so that few are. NULL: there is none left. */
static struct bfc_neighbour *take_richest(struct bfc_neighbour *all, size_t count) {
    struct bfc_neighbour *richest = NULL;
    for (size_t i = 0; i < count; i++)
        if (all[i].cached && (!richest || all[i].cached > richest->cached))
            richest = &all[i];
    return richest;
}

uint64_t bfc_yield_ask(const struct bfc_domain *domain, uint64_t bytes) {
    struct bfc_neighbour all[NEIGHBOURS_MOST], *next;
    struct asked asked[NEIGHBOURS_MOST];
    uint64_t wanted = missing(bytes), came = 0, deadline = bfc_now_ns() + ALL_NS;
    size_t asked_count = 0, count = bfc_neighbours_on(domain->section->device_uuid,
                                                      bfc_pid_namespace(), all, NEIGHBOURS_MOST);
    while (came < wanted && bfc_now_ns() < deadline && (next = take_richest(all, count))) {
        next->cached = 0;
        if (!ask(&asked[asked_count], domain, next->pid, wanted - came))
            continue;
        uint64_t until = bfc_now_ns() + EACH_NS;
        wait_a_while(asked, ++asked_count, wanted, until < deadline ? until : deadline);
        came = came_from_all(asked, asked_count);
    }
    wait_for_slow(asked, asked_count, wanted, deadline);
    came = came_from_all(asked, asked_count);
    let_go(asked, asked_count);
    return came;
}
