#include "planner/pack/fill.h"

#include <stdlib.h>
#include <string.h>

#include "base/numbers.h"
#include "planner/common/sort.h"

/* Offsets from `from` to before `to`, at which the item to be placed cannot begin. */
struct barred {
    uint64_t from;
    uint64_t to;
};

struct fill {
    const struct arena *arena;
    uint32_t count;   /* number of pieces */
    uint32_t *at;     /* by piece: its number in the order of births */
    uint32_t *piece;  /* by number in the order of births: the piece */
    uint32_t *item;   /* by piece: the item that it is part of */
    uint64_t *births; /* by number in the order of births: the birth of the piece, in ticks */
    /* A binary tree over the pieces in the order of births; its leaves begin at index `leaves`. The
     * leaf of a placed piece has the tick of its death, and the leaf of another piece has 0. Each
     * other node has the larger value of its two children. */
    uint64_t *latest;
    uint32_t leaves;
    uint32_t *by_rank;
    struct barred *barred;
    size_t barred_count, barred_room;
};

static bool order_pieces(struct fill *fill) {
    struct keyed *keyed = malloc(((size_t)fill->count + 1) * sizeof *keyed);
    bool good = keyed;
    for (uint32_t p = 0; good && p < fill->count; p++)
        keyed[p] = (struct keyed){fill->arena->pieces[p].birth, p};
    good = good && sort_keyed(keyed, fill->count);
    for (uint32_t i = 0; good && i < fill->count; i++) {
        fill->piece[i] = keyed[i].index;
        fill->at[keyed[i].index] = i;
        fill->births[i] = keyed[i].key;
    }
    for (uint32_t i = 0; good && i < fill->arena->count; i++)
        for (uint32_t p = fill->arena->first[i]; p < fill->arena->first[i + 1]; p++)
            fill->item[p] = i;
    free(keyed);
    return good;
}

struct fill *fill_create(const struct arena *arena) {
    struct fill *fill = calloc(1, sizeof *fill);
    if (!fill)
        return NULL;
    fill->arena = arena;
    fill->count = arena->first[arena->count];
    fill->leaves = 1;
    while (fill->leaves < fill->count)
        fill->leaves *= 2;
    const size_t n = (size_t)fill->count + 1;
    fill->at = malloc(n * sizeof *fill->at);
    fill->piece = malloc(n * sizeof *fill->piece);
    fill->item = malloc(n * sizeof *fill->item);
    fill->births = malloc(n * sizeof *fill->births);
    fill->latest = malloc((size_t)fill->leaves * 2 * sizeof *fill->latest);
    fill->by_rank = malloc(((size_t)arena->count + 1) * sizeof *fill->by_rank);
    if (!fill->at || !fill->piece || !fill->item || !fill->births || !fill->latest ||
        !fill->by_rank || !order_pieces(fill)) {
        fill_destroy(fill);
        return NULL;
    }
    return fill;
}

void fill_destroy(struct fill *fill) {
    if (!fill)
        return;
    free(fill->at);
    free(fill->piece);
    free(fill->item);
    free(fill->births);
    free(fill->latest);
    free(fill->by_rank);
    free(fill->barred);
    free(fill);
}

static void mark_placed(struct fill *fill, uint32_t item) {
    for (uint32_t p = fill->arena->first[item]; p < fill->arena->first[item + 1]; p++) {
        const uint64_t death = fill->arena->pieces[p].death;
        for (uint32_t node = fill->leaves + fill->at[p]; node > 0 && fill->latest[node] < death;
             node /= 2)
            fill->latest[node] = death;
    }
}

/* Returns how many pieces are born before the tick. */
static uint32_t born_before(const struct fill *fill, uint64_t tick) {
    uint32_t lo = 0, hi = fill->count;
    while (lo < hi) {
        const uint32_t middle = lo + (hi - lo) / 2;
        if (fill->births[middle] < tick)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo;
}

/* Returns whether more than `gap` ticks lie between the end of `first` and the beginning of
 * `second`. */
static bool are_ordered(const struct piece *first, const struct piece *second, uint64_t gap) {
    return second->birth > first->death && second->birth - first->death > gap;
}

static bool alive_together(const struct arena *arena, const struct piece *a,
                           const struct piece *b) {
    const bool apart =
        arena->streams && a->stream != b->stream && a->stream != ROW_NONE && b->stream != ROW_NONE;
    if (apart)
        return !are_ordered(a, b, arena->gap) && !are_ordered(b, a, arena->gap);
    return a->birth < b->death && b->birth < a->death;
}

static bool bar_offsets(struct fill *fill, const struct piece *piece, const struct piece *other,
                        uint64_t other_offset) {
    const uint64_t bottom = other_offset + other->place;
    const uint64_t top = bottom + other->size;
    if (top <= piece->place || piece->size == 0 || other->size == 0)
        return true;
    if (fill->barred_count == fill->barred_room) {
        const size_t room = fill->barred_room == 0 ? 256 : fill->barred_room * 2;
        struct barred *barred = realloc(fill->barred, room * sizeof *barred);
        if (!barred)
            return false;
        fill->barred = barred;
        fill->barred_room = room;
    }
    const uint64_t reach = piece->place + piece->size;
    fill->barred[fill->barred_count++] =
        (struct barred){bottom >= reach ? bottom - reach + 1 : 0, top - piece->place};
    return true;
}

/* Adds to fill->barred the offsets at which the piece's item cannot lie, because this piece of it
 * would overlap a placed piece. False: the host has no memory. */
static bool bar_met(struct fill *fill, const struct piece *piece, const uint64_t *offsets) {
    const struct arena *arena = fill->arena;
    const uint64_t gap = arena->streams ? arena->gap + (arena->gap < UINT64_MAX) : 0;
    const uint64_t until = piece->death > UINT64_MAX - gap ? UINT64_MAX : piece->death + gap;
    const uint64_t since = piece->birth < gap ? 0 : piece->birth - gap;
    const uint32_t end = born_before(fill, until);
    uint32_t stack[66];
    int depth = 0;
    stack[depth++] = 1;
    while (depth > 0) {
        const uint32_t node = stack[--depth];
        if (fill->latest[node] <= since)
            continue;
        if (node < fill->leaves) {
            stack[depth++] = 2 * node + 1;
            stack[depth++] = 2 * node;
            continue;
        }
        const uint32_t at = node - fill->leaves;
        if (at >= end)
            /* all further pieces are born too late to be alive at the same time as `piece` */
            break;
        const uint32_t other = fill->piece[at];
        if (fill->latest[node] > 0 && alive_together(arena, piece, &arena->pieces[other]) &&
            !bar_offsets(fill, piece, &arena->pieces[other], offsets[fill->item[other]]))
            return false;
    }
    return true;
}

static int by_from(const void *a, const void *b) {
    const struct barred *x = a;
    const struct barred *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

/* Returns the lowest offset that no range of fill->barred forbids; if `tightest` is true, the
 * beginning of the smallest hole between these ranges into which the item fits. */
static uint64_t choose_offset(struct fill *fill, bool tightest) {
    uint64_t at = 0, chosen = 0, least = UINT64_MAX;
    qsort(fill->barred, fill->barred_count, sizeof *fill->barred, by_from);
    for (size_t i = 0; i < fill->barred_count; i++) {
        const struct barred *b = &fill->barred[i];
        if (at < b->from) {
            if (!tightest)
                return at;
            if (b->from - at < least) {
                least = b->from - at;
                chosen = at;
            }
        }
        at = bfc_max(at, b->to);
    }
    return least == UINT64_MAX ? at : chosen;
}

static bool place_item(struct fill *fill, uint32_t item, bool tightest, uint64_t *offsets) {
    const struct arena *arena = fill->arena;
    fill->barred_count = 0;
    for (uint32_t p = arena->first[item]; p < arena->first[item + 1]; p++)
        if (!bar_met(fill, &arena->pieces[p], offsets))
            return false;
    offsets[item] = fill->barred_count == 0 ? 0 : choose_offset(fill, tightest);
    return true;
}

static bool is_pinned(const struct arena *arena, uint32_t item) {
    return arena->pins && arena->pins[item] != NOT_PINNED;
}

static void place_pinned(struct fill *fill, uint64_t *offsets, struct fill_result *result) {
    const struct arena *arena = fill->arena;
    for (uint32_t i = 0; i < arena->count; i++) {
        if (!is_pinned(arena, i))
            continue;
        offsets[i] = arena->pins[i];
        mark_placed(fill, i);
        result->peak = bfc_max(result->peak, offsets[i] + arena->boxes[i].size);
    }
}

struct fill_result fill_pack(struct fill *fill, const uint32_t *rank, bool tightest, uint64_t limit,
                             uint64_t *offsets) {
    const struct arena *arena = fill->arena;
    struct fill_result result = {0, false, false};
    memset(fill->latest, 0, (size_t)fill->leaves * 2 * sizeof *fill->latest);
    place_pinned(fill, offsets, &result);
    for (uint32_t i = 0; i < arena->count; i++)
        fill->by_rank[rank[i]] = i;
    for (uint32_t r = 0; r < arena->count; r++) {
        const uint32_t item = fill->by_rank[r];
        const uint64_t size = arena->boxes[item].size;
        if (is_pinned(arena, item))
            continue;
        if (!place_item(fill, item, tightest, offsets)) {
            result.no_memory = true;
            return result;
        }
        if (size > limit || offsets[item] > limit - size)
            return result;
        mark_placed(fill, item);
        result.peak = bfc_max(result.peak, offsets[item] + size);
    }
    result.done = true;
    return result;
}
