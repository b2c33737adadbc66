/* Sweeps through time over the living blocks, which are kept in the order of their places as bits
 * of a set. A block that is born is compared with its two neighbours only, since all other living
 * blocks are apart from each other. */
#include <stdlib.h>

#include "interpose/features/plan/followed_plan.h"

/* A planned block, or the part of one that lies in the next period. */
struct piece {
    uint64_t birth, death; /* ticks */
    uint64_t from, to;     /* addresses, in bytes; arenas lie one after the other */
};

struct moment {
    uint64_t tick;
    uint32_t piece; /* index of the piece; pieces are sorted by address */
    bool birth;
};

enum { LEVELS = 6, BITS = 6, WIDTH = 1 << BITS };

struct sweep {
    struct piece *pieces;
    struct moment *moments;
    uint32_t count;
    uint64_t *living[LEVELS]; /* a bit for each piece; on each further level a bit for each word of
                                 the one below */
};

static int by_place(const void *a, const void *b) {
    const struct piece *p = a, *q = b;
    return p->from < q->from ? -1 : p->from > q->from;
}

/* At one tick, deaths come before births. */
static int by_time(const void *a, const void *b) {
    const struct moment *p = a, *q = b;
    return p->tick != q->tick ? (p->tick < q->tick ? -1 : 1) : (int)p->birth - (int)q->birth;
}

static void add_piece(struct sweep *sweep, uint64_t birth, uint64_t death, uint64_t from,
                      uint64_t size) {
    if (birth < death)
        sweep->pieces[sweep->count++] = (struct piece){birth, death, from, from + size};
}

/* Adds a block. A block that outlives its period overlaps with the beginning of the next one, which
 * looks the same: so it becomes two pieces. */
static void add_event(struct sweep *sweep, const struct bfc_plan *plan, uint32_t i, uint64_t base) {
    const struct bfc_plan_header *header = plan->header;
    const struct bfc_plan_event *event = &plan->events[i];
    uint64_t end = header->period_birth + header->period_ticks, from = base + event->offset;
    if (event->class_of == BFC_PLAN_UNPLANNED || !event->size)
        return;
    bool crosses = i >= header->prefix && header->period && event->death > end;
    add_piece(sweep, event->birth, crosses ? end : event->death, from, event->size);
    if (crosses)
        add_piece(sweep, header->period_birth, event->death - header->period_ticks, from,
                  event->size);
}

static void add_events(struct sweep *sweep, const struct bfc_plan *plan) {
    for (uint32_t i = 0; i < plan->header->events; i++) {
        uint64_t base = 0;
        for (uint32_t a = 0; a < plan->events[i].arena; a++)
            base += plan->arenas[a].peak;
        add_event(sweep, plan, i, base);
    }
}

static bool make_room(struct sweep *sweep, uint64_t events) {
    uint64_t pieces = 2 * events + 1, words = pieces;
    sweep->pieces = malloc(pieces * sizeof *sweep->pieces);
    sweep->moments = malloc(2 * pieces * sizeof *sweep->moments);
    bool good = sweep->pieces && sweep->moments;
    for (int level = 0; level < LEVELS; level++) {
        words = words / WIDTH + 1;
        sweep->living[level] = calloc(words, sizeof *sweep->living[level]);
        good = good && sweep->living[level];
    }
    return good;
}

static void end_sweep(struct sweep *sweep) {
    free(sweep->pieces);
    free(sweep->moments);
    for (int level = 0; level < LEVELS; level++)
        free(sweep->living[level]);
}

static void set_living(struct sweep *sweep, uint32_t piece, bool lives) {
    for (int level = 0; level < LEVELS; level++, piece >>= BITS) {
        uint64_t *word = &sweep->living[level][piece >> BITS], bit = UINT64_C(1) << piece % WIDTH;
        *word = lives ? *word | bit : *word & ~bit;
        if (*word && !lives)
            return;
    }
}

static unsigned pick_bit(uint64_t word, bool above) {
    return above ? (unsigned)__builtin_ctzll(word) : 63u - (unsigned)__builtin_clzll(word);
}

/* Returns the nearest living piece above or below this one; UINT32_MAX: there is none. */
static uint32_t find_neighbour(const struct sweep *sweep, uint32_t piece, bool above) {
    uint64_t at = piece, word = 0;
    int level = 0;
    for (;; level++, at >>= BITS) {
        if (level == LEVELS)
            return UINT32_MAX;
        uint64_t bit = at % WIDTH, beyond = above ? ~UINT64_C(1) << bit : (UINT64_C(1) << bit) - 1;
        word = sweep->living[level][at >> BITS] & beyond;
        if (word)
            break;
    }
    for (at >>= BITS;; word = sweep->living[level][at]) {
        at = at << BITS | pick_bit(word, above);
        if (level-- == 0)
            return (uint32_t)at;
    }
}

static void sort_pieces(struct sweep *sweep) {
    qsort(sweep->pieces, sweep->count, sizeof *sweep->pieces, by_place);
    for (uint32_t i = 0; i < sweep->count; i++) {
        sweep->moments[2 * i] = (struct moment){sweep->pieces[i].birth, i, true};
        sweep->moments[2 * i + 1] = (struct moment){sweep->pieces[i].death, i, false};
    }
    qsort(sweep->moments, 2 * (size_t)sweep->count, sizeof *sweep->moments, by_time);
}

static bool overlaps_neighbour(const struct sweep *sweep, uint32_t piece) {
    const struct piece *pieces = sweep->pieces;
    uint32_t below = find_neighbour(sweep, piece, false),
             above = find_neighbour(sweep, piece, true);
    return (below != UINT32_MAX && pieces[below].to > pieces[piece].from) ||
           (above != UINT32_MAX && pieces[above].from < pieces[piece].to);
}

static enum bfc_overlap sweep_through(struct sweep *sweep) {
    for (uint32_t i = 0; i < 2 * sweep->count; i++) {
        const struct moment *moment = &sweep->moments[i];
        if (moment->birth && overlaps_neighbour(sweep, moment->piece))
            return BFC_OVERLAP_FOUND;
        set_living(sweep, moment->piece, moment->birth);
    }
    return BFC_OVERLAP_NONE;
}

enum bfc_overlap bfc_plan_find_overlap(const struct bfc_plan *plan) {
    struct sweep sweep = {.count = 0};
    enum bfc_overlap found = BFC_OVERLAP_NO_HOST_MEMORY;
    if (make_room(&sweep, plan->header->events)) {
        add_events(&sweep, plan);
        sort_pieces(&sweep);
        found = sweep_through(&sweep);
    }
    end_sweep(&sweep);
    return found;
}
