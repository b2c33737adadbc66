#include "interpose/features/who/frees.h"

#include "interpose/arena/arena.h"
#include "interpose/features/who/samples.h"
#include "interpose/features/who/sites.h"

enum { FREES = 8192, REFUSED = 64 };

/* The last frees, in a ring buffer. */
static struct {
    uint64_t address;
    uint32_t site;
} frees[FREES];
static uint64_t free_count;

static struct bfc_refused_free refused[REFUSED];
static size_t refused_count;

/* Sets `site` to the index in bfc_sites of the calling thread's call stack, and returns with
 * bfc_who_lock held. False, with the lock free: no allocation was recorded yet. */
static bool enter_at_site(uint32_t *site) {
    struct bfc_stack stack;
    pool_lock(&bfc_who_lock);
    bool begun = bfc_sites.sites != NULL;
    pool_unlock(&bfc_who_lock);
    if (!begun)
        return false;
    bfc_who_take_stack(&stack);
    *site = bfc_who_enter_at_site(&stack);
    return true;
}

void bfc_who_freed(CUdeviceptr pointer) {
    uint32_t site;
    if (!enter_at_site(&site))
        return;
    frees[free_count % FREES].address = pointer;
    frees[free_count++ % FREES].site = site;
    pool_unlock(&bfc_who_lock);
}

static uint32_t last_free_of(uint64_t address) {
    for (uint64_t back = 1; back <= free_count && back <= FREES; back++)
        if (frees[(free_count - back) % FREES].address == address)
            return frees[(free_count - back) % FREES].site;
    return 0;
}

/* If the address lies in a block in use, stores in `free` the address's offset in the block, the
 * block's size and where it was allocated. */
static void describe_inside(struct bfc_refused_free *free) {
    struct bfc_arena *arena = bfc_arena_of(free->address);
    struct bfc_block_info block;
    if (!arena || !bfc_pool_find(arena->pool, free->address, &block) || !block.live)
        return;
    free->inside = free->address - block.start;
    free->bytes = block.requested;
    free->allocated_at = bfc_who_site_of(block.id);
}

void bfc_who_refused_free(CUdeviceptr pointer) {
    uint32_t site;
    size_t i = 0;
    if (!enter_at_site(&site))
        return;
    while (i < refused_count && (refused[i].address != pointer || refused[i].site != site))
        i++;
    if (i < refused_count)
        refused[i].times++;
    else if (i < REFUSED) {
        refused[i] = (struct bfc_refused_free){
            .address = pointer, .site = site, .freed_at = last_free_of(pointer), .times = 1};
        describe_inside(&refused[i]);
        refused_count++;
    }
    pool_unlock(&bfc_who_lock);
}

size_t bfc_who_refused_frees(const struct bfc_refused_free **list) {
    *list = refused;
    return refused_count;
}
