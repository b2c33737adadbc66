/*
 * A pool with pages over a made-up device, and a model of what is in use: for tests. Whatever is
 * wrong is noted as `fault`, the first of them.
 */
#ifndef TESTS_UNIT_POOL_PAGE_MACHINE_H
#define TESTS_UNIT_POOL_PAGE_MACHINE_H

#include "pool/policy/policy.h"
#include "tests/unit/pool/fake_pages.h"

#define BLOCKS 128
#define BUSY 4096
#define PINS 8
#define CAPACITY (64 * MIB)

struct busy {
    bfc_addr start;
    uint64_t bytes;
    bfc_fence fence; /* freed under it */
};

struct machine {
    struct fake_pages fake;
    struct bfc_pool *pool;
    struct bfc_block_info live[BLOCKS];
    unsigned count;
    struct busy pinned[PINS]; /* live or freed meanwhile */
    unsigned pins;
    struct busy freed[BUSY]; /* what is not known to be complete */
    unsigned freed_count;
    bfc_fence drawn, completed;
    struct busy awaited[BLOCKS];
    unsigned awaited_count;
    bfc_addr planned; /* the last region that was set apart, or 0 */
    uint64_t planned_bytes;
    uint64_t seed, clock;
    const char *fault;
};

uint64_t machine_draw(struct machine *m, uint64_t n);
void machine_fail(struct machine *m, const char *fault);
bool machine_meet(bfc_addr a, uint64_t a_bytes, bfc_addr b, uint64_t b_bytes);

/* The device's `in_use`, and the pool's upstream. */
bool machine_in_use(void *user, bfc_addr start, uint64_t bytes);
bfc_fence machine_poll(void *context);
bfc_fence machine_wait(void *context, bfc_fence fence, uint64_t timeout_ns);
uint64_t machine_now(void *context);

/* Calls of the pool, and whether the answers can be true. */
enum bfc_status machine_allocate(struct machine *m, uint64_t bytes, unsigned flags);
/* One call of those for plans, at random. */
void machine_plan(struct machine *m, uint64_t bytes);
void machine_free(struct machine *m, unsigned i, bfc_fence fence);
void machine_check(struct machine *m);
void machine_close(struct machine *m);

#endif
