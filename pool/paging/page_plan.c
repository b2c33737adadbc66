/*
 * Plans which pages a block gets where no free block is large enough. The best place is the one
 * that lacks the fewest pages: a ready block next to addresses without pages is extended, or two
 * ready blocks are joined across such addresses. New pages fill the place as far as the slack
 * allows; beyond that, ready pages of other blocks move there. A page moves only as a whole, so the
 * pages to be moved may be larger than the place. The block then gets the longest range of
 * addresses without pages instead.
 */
#include "pool/paging/page_plan.h"

#include "pool/blocks/paging.h"
#include "pool/paging/victims.h"
#include "pool/policy/growth.h"
#include "pool/policy/policy.h"

/* how many ranges of addresses without pages are examined to find the place for a new block */
#define MOST_LOOKS 1024

/* A place for a new block: a range of addresses without pages that would get some, and the ready
 * blocks next to it that become part of the block. */
struct place {
    bfc_addr at;
    /* bytes that must get pages, a multiple of the smallest page; UINT64_MAX: the block does not
     * fit here */
    uint64_t lacking;
    uint64_t space; /* how many bytes from `at` on have no pages and may get some */
    /* how many bytes of the place and its ready neighbours stay free beside the block */
    uint64_t rest;
    /* the ready neighbours that become part of the block, 0 if none; their pages must not move */
    block_index keep[2];
};

/* Returns how many bytes must get pages next to a ready block of `ready` bytes, to serve a request
 * of `size` bytes. It is at least one smallest page, even if the ready block is large enough by
 * itself. Such a block was not taken because the policy does not split it, or because it has no
 * room after the next multiple of BFC_ALIGNMENT. */
static uint64_t lacking_next_to(const struct bfc_pool *pool, uint64_t ready, uint64_t size) {
    return bfc_max(round_to_pages(pool, bfc_subtract_saturating(size, ready)),
                   pool->paging->calls.granule);
}

static uint64_t ready_size(const struct bfc_pool *pool, block_index b) {
    const struct block *at = &pool->blocks[b];
    return b && block_state(at) == BLOCK_READY ? block_size(at) : 0;
}

/* A new block may begin in block `previous` and go on after its end. Returns how many bytes at the
 * end of `previous` such a block of `granules` can use; 0 if `previous` is not ready. */
static uint64_t usable_before(const struct bfc_pool *pool, block_index previous,
                              uint64_t granules) {
    uint64_t size = ready_size(pool, previous);
    return size ? size - (block_lead(pool, previous, granules) << BFC_GRANULE_BITS) : 0;
}

/* Returns the place for a new block in `bare`, a range of addresses without pages. With `up` the
 * place also extends the ready block before `bare`, with `down` the one after it. With both, all of
 * `bare` gets pages, and the two ready blocks are joined. */
static struct place place_in(const struct bfc_pool *pool, block_index bare, uint64_t granules,
                             bool up, bool down) {
    const struct block *at = &pool->blocks[bare];
    uint64_t size = granules << BFC_GRANULE_BITS, space = block_size(at);
    uint64_t before = up ? usable_before(pool, at->previous, granules) : 0;
    uint64_t after = down ? ready_size(pool, at->next) : 0;
    bool joins = up && down;
    uint64_t lacking = joins ? space : lacking_next_to(pool, before + after, size);
    if ((down && !after) || (joins && !before) || lacking > space ||
        before + lacking + after < size)
        return (struct place){.lacking = UINT64_MAX};
    return (struct place){.at = up ? block_start(at) : block_end(at) - lacking,
                          .lacking = lacking,
                          .space = up ? space : lacking,
                          .rest = before + lacking + after - size,
                          .keep = {before ? at->previous : 0, after ? at->next : 0}};
}

/* Whether place a is better than place b: fewer bytes must get pages; or as many, but fewer bytes
 * stay free beside the block; or as many of both, but a is at the lower address. */
static bool is_better(const struct place *a, const struct place *b) {
    if (a->lacking != b->lacking)
        return a->lacking < b->lacking;
    return a->rest < b->rest || (a->rest == b->rest && a->at < b->at);
}

/* Whether pages may be mapped anywhere in this block of addresses without pages: its region is not
 * set apart, and no page that could not be unmapped is in the way. */
static bool is_open(const struct bfc_pool *pool, block_index bare) {
    const struct block *at = &pool->blocks[bare];
    return !block_is_apart(at) && !has_lost(pool, block_start(at), block_end(at));
}

static void consider_places(const struct bfc_pool *pool, block_index bare, uint64_t granules,
                            struct place *best) {
    struct place places[] = {place_in(pool, bare, granules, true, false),
                             place_in(pool, bare, granules, false, true),
                             place_in(pool, bare, granules, true, true)};
    for (unsigned i = 0; i < 3; i++)
        if (is_better(&places[i], best))
            *best = places[i];
}

static block_index find_widest(const struct bfc_pool *pool, enum block_zone zone) {
    block_index root = pool->bare.root;
    block_index b = sorted_largest(root, pool->blocks, zone);
    while (b && !is_open(pool, b))
        b = sorted_previous(root, pool->blocks, b);
    return b;
}

/* Returns the best place for a new block of `granules`. Examines only the longest range of
 * addresses without pages, where a pool usually grows, and the MOST_LOOKS ranges that were made
 * last, so that the time of a call is bounded. */
static struct place best_place(const struct bfc_pool *pool, uint64_t granules) {
    enum block_zone zone = policy_zone(pool, granules << BFC_GRANULE_BITS);
    struct place best = {.lacking = UINT64_MAX};
    block_index first = find_widest(pool, zone);
    if (first)
        consider_places(pool, first, granules, &best);
    block_index b = pool->bare_list.newest;
    for (unsigned looks = 0; b && looks < MOST_LOOKS; looks++, b = pool->details[b].older)
        if (block_zone(&pool->blocks[b]) == zone && is_open(pool, b))
            consider_places(pool, b, granules, &best);
    return best;
}

static struct place widest_place(const struct bfc_pool *pool, uint64_t granules) {
    block_index b = find_widest(pool, policy_zone(pool, granules << BFC_GRANULE_BITS));
    return b ? place_in(pool, b, granules, true, false) : (struct place){.lacking = UINT64_MAX};
}

/* Chooses the pages for a place: the array on_hand gets the ready pages that will move there, and
 * `plan` the numbers of bytes that move and that are made. At most `room` bytes of new pages are
 * made, unless too few pages are ready to move. False: the place has too few addresses. */
static bool supply_pages(struct bfc_pool *pool, const struct request *request,
                         const struct place *place, uint64_t room, struct page_plan *plan) {
    *plan =
        (struct page_plan){.at = place->at, .missing = round_to_pages(pool, request_size(request))};
    if (place->lacking == UINT64_MAX)
        return false;
    pool->paging->on_hand.count = 0;
    if (place->lacking > room)
        plan->moving = victims_choose(pool, place->lacking - room, place->keep, false);
    plan->making = bfc_subtract_saturating(place->lacking, plan->moving);
    plan->missing = plan->moving + plan->making;
    return plan->missing <= place->space;
}

static void add_step(const struct bfc_pool *pool, const struct place *place, uint64_t room,
                     struct page_plan *plan) {
    if (plan->moving || !plan->making)
        return;
    uint64_t most = bfc_subtract_saturating(bfc_min(room, place->space), plan->making);
    plan->making += bfc_min(page_growth_step(pool), most);
}

/* Chooses a place and the pages for it. Where possible, at most `most` bytes of the pages are new.
 * More than `room` bytes are new only if too few pages are ready to move. False: no place has
 * enough addresses. */
static bool decide_place(struct bfc_pool *pool, const struct request *request, uint64_t room,
                         uint64_t most, struct place *place, struct page_plan *plan) {
    struct place best = best_place(pool, request->granules);
    *place = best;
    bool enough = supply_pages(pool, request, place, room, plan);
    uint64_t making = enough ? plan->making : UINT64_MAX;
    if (making <= most)
        return true;
    /* The best place extends ready blocks, whose pages must stay where they are, and would need
     * more than `most` bytes of new pages. In the longest range without pages, the pages of those
     * ready blocks can move too, so it may need fewer new ones. */
    *place = widest_place(pool, request->granules);
    enough = supply_pages(pool, request, place, room, plan);
    if (making == UINT64_MAX || (enough && plan->making < making))
        return enough;
    *place = best;
    return supply_pages(pool, request, place, room, plan);
}

static enum bfc_status take_victims(struct bfc_pool *pool) {
    bool noted = page_array_prepare(&pool->paging->table.pages, pool->paging->on_hand.count) &&
                 victims_take(pool);
    return noted ? BFC_OK : BFC_NO_HOST_MEMORY;
}

enum bfc_status plan_make(struct bfc_pool *pool, const struct request *request, bool saving,
                          struct page_plan *plan) {
    struct place place;
    uint64_t limit = room_below_limit(pool) & ~(pool->paging->calls.granule - 1);
    uint64_t room = saving ? 0 : bfc_min(limit, page_growth_room(pool, request->bytes));
    if (!decide_place(pool, request, room, saving ? 0 : limit, &place, plan))
        return BFC_OUT_OF_MEMORY;
    plan->missing = 0;
    if (plan->making > limit)
        return BFC_OUT_OF_MEMORY;
    if (!saving)
        page_growth_judge(pool, request->bytes, plan->making);
    plan->own = page_growth_own(pool, plan->making);
    add_step(pool, &place, room, plan);
    plan->page =
        page_growth_piece(pool, plan->making, page_growth_size(pool, request_size(request)));
    return take_victims(pool);
}

/* Keeps in the array on_hand (ready pages of which some will move), in their order, as many pages
 * as fit into `most` bytes, and removes the others; returns the sum of the bytes of those kept. */
static uint64_t keep_within(struct page_array *on_hand, uint64_t most) {
    uint64_t bytes = 0;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < on_hand->count; i++)
        if (on_hand->all[i].bytes <= most - bytes) {
            bytes += on_hand->all[i].bytes;
            on_hand->all[kept++] = on_hand->all[i];
        }
    on_hand->count = kept;
    return bytes;
}

enum bfc_status plan_for(struct bfc_pool *pool, bfc_addr at, uint64_t bytes,
                         struct page_plan *plan) {
    victims_choose(pool, bytes, NULL, false);
    *plan = (struct page_plan){.at = at, .page = page_growth_fit(pool, bytes)};
    plan->moving = keep_within(&pool->paging->on_hand, bytes);
    plan->making = bytes - plan->moving;
    return plan->making > room_below_limit(pool) ? BFC_OUT_OF_MEMORY : take_victims(pool);
}

enum bfc_status plan_new(struct bfc_pool *pool, bfc_addr at, uint64_t bytes, uint64_t page,
                         struct page_plan *plan) {
    *plan = (struct page_plan){.at = at, .making = bytes, .page = page};
    pool->paging->on_hand.count = 0;
    return bytes > room_below_limit(pool) ? BFC_OUT_OF_MEMORY : BFC_OK;
}
