#include "planner/pack/packing.h"

#include <stdlib.h>
#include <string.h>

#include "base/numbers.h"

static bool measure_parts(struct arena_state *state) {
    const struct parts *parts = &state->parts;
    for (uint32_t p = 0; p < parts->count; p++) {
        const struct part *part = &parts->list[p];
        state->states[p] = (struct part_state){.part = part,
                                               .best = UINT64_MAX,
                                               .proved = part->bound,
                                               .node_limit = 8 * (uint64_t)part->count + 64};
        if (!ranks_measure(state->traits + part->from, parts->boxes + part->from, part->count,
                           part->sections, parts->item + part->from, state->arena->spans))
            return false;
    }
    return true;
}

static bool create_parts(struct arena_state *state) {
    const struct arena *arena = state->arena;
    state->fixed = malloc(((size_t)arena->count + 1) * sizeof *state->fixed);
    if (!state->fixed)
        return false;
    memset(state->fixed, 0xff, arena->count * sizeof *state->fixed);
    if (!parts_build(&state->parts, arena, state->fixed))
        return false;
    for (uint32_t i = 0; i < arena->count; i++)
        if (state->fixed[i] != UINT64_MAX)
            state->fixed_top = bfc_max(state->fixed_top, state->fixed[i] + arena->boxes[i].size);
    const size_t boxes = (size_t)state->parts.boxes_count + 1;
    state->states = calloc(state->parts.count + (size_t)1, sizeof *state->states);
    state->traits = malloc(boxes * sizeof *state->traits);
    state->best = malloc(boxes * sizeof *state->best);
    return state->states && state->traits && state->best && measure_parts(state);
}

/* Prepares hole filling (fill.h), which packs the arena as a whole instead of part by part.
 * Measures the traits of all items, such as size and lifetime, by which the items are ordered. */
static bool create_whole(struct arena_state *state) {
    const struct arena *arena = state->arena;
    const size_t n = (size_t)arena->count + 1;
    uint32_t *self = malloc(n * sizeof *self);
    state->whole = malloc(n * sizeof *state->whole);
    state->filled = malloc(n * sizeof *state->filled);
    bool good = self && state->whole && state->filled;
    for (uint32_t i = 0; good && i < arena->count; i++)
        self[i] = i;
    good = good && ranks_measure(state->whole, arena->boxes, arena->count, arena->sections, self,
                                 arena->spans);
    free(self);
    return good;
}

bool arena_state_create(struct arena_state *state, const struct arena *arena) {
    *state = (struct arena_state){
        .arena = arena, .filled_peak = UINT64_MAX, .peak = arena->count == 0 ? 0 : UINT64_MAX};
    const bool good = (arena->pins || create_parts(state)) && (arena->exact || create_whole(state));
    state->stale = true;
    if (good)
        arena_state_update(state);
    return good;
}

void arena_state_free(struct arena_state *state) {
    parts_free(&state->parts);
    free(state->states);
    free(state->traits);
    free(state->best);
    free(state->whole);
    free(state->fixed);
    free(state->filled);
    *state = (struct arena_state){0};
}

static uint64_t top_of(const struct part_state *state) {
    return state->best == UINT64_MAX ? UINT64_MAX : state->part->base + state->best;
}

void arena_state_update(struct arena_state *state) {
    if (!state->stale)
        return;
    state->stale = false;
    uint64_t peak = state->arena->pins ? UINT64_MAX : state->fixed_top;
    for (uint32_t p = 0; p < state->parts.count; p++)
        peak = bfc_max(peak, top_of(&state->states[p]));
    state->peak = bfc_min(peak, state->filled_peak);
}

struct part_state *arena_state_worst(struct arena_state *state) {
    struct part_state *worst = NULL;
    for (uint32_t p = 0; p < state->parts.count; p++) {
        struct part_state *part = &state->states[p];
        if (!worst || top_of(part) > top_of(worst))
            worst = part;
    }
    if (!worst || top_of(worst) <= state->arena->bound || worst->best <= worst->proved)
        return NULL;
    return worst;
}

bool arena_state_optimal(const struct arena_state *state) {
    if (state->peak <= state->arena->bound)
        return true;
    for (uint32_t p = 0; state->arena->exact && p < state->parts.count; p++)
        if (state->states[p].part->base + state->states[p].proved >= state->peak)
            return true;
    return false;
}

void arena_state_offsets(const struct arena_state *state, uint64_t *offsets) {
    const struct arena *arena = state->arena;
    if (state->filled_peak <= state->peak && state->filled) {
        memcpy(offsets, state->filled, arena->count * sizeof *offsets);
        return;
    }
    memcpy(offsets, state->fixed, arena->count * sizeof *offsets);
    for (uint32_t p = 0; p < state->parts.count; p++) {
        const struct part *part = state->states[p].part;
        for (uint32_t i = part->from; i < part->from + part->count; i++)
            offsets[state->parts.item[i]] = part->base + state->best[i];
    }
}
