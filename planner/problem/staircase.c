#include "planner/problem/staircase.h"

#include <stdlib.h>

bool staircase_reserve(struct staircase *staircase, uint32_t rows) {
    if (rows <= staircase->room)
        return true;
    struct piece *more = realloc(staircase->rows, rows * sizeof *more);
    if (!more)
        return false;
    staircase->rows = more;
    uint32_t *heap = realloc(staircase->heap, rows * sizeof *heap);
    if (!heap)
        return false;
    staircase->heap = heap;
    staircase->room = rows;
    return true;
}

void staircase_free(struct staircase *staircase) {
    free(staircase->rows);
    free(staircase->heap);
    *staircase = (struct staircase){0};
}

static int by_birth(const void *a, const void *b) {
    const struct piece *x = a;
    const struct piece *y = b;
    return (x->birth > y->birth) - (x->birth < y->birth);
}

static void heap_push(struct staircase *s, uint32_t *used, uint32_t row) {
    uint32_t at = (*used)++;
    while (at > 0 && s->rows[s->heap[(at - 1) / 2]].size < s->rows[row].size) {
        s->heap[at] = s->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    s->heap[at] = row;
}

static void heap_pop(struct staircase *s, uint32_t *used) {
    const uint32_t row = s->heap[--*used];
    uint32_t at = 0;
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= *used)
            break;
        if (child + 1 < *used && s->rows[s->heap[child + 1]].size > s->rows[s->heap[child]].size)
            child++;
        if (s->rows[s->heap[child]].size <= s->rows[row].size)
            break;
        s->heap[at] = s->heap[child];
        at = child;
    }
    s->heap[at] = row;
}

/* Appends the piece to the list. If the last piece of the list ends where the new one begins, and
 * has the same size, that piece is lengthened instead. */
static uint32_t append_piece(struct piece *out, uint32_t count, struct piece piece) {
    if (count > 0 && out[count - 1].death == piece.birth && out[count - 1].size == piece.size) {
        out[count - 1].death = piece.death;
        return count;
    }
    out[count] = piece;
    return count + 1;
}

uint32_t staircase_outline(struct staircase *s, struct piece *out) {
    uint32_t count = 0, used = 0, next = 0;
    uint64_t now = 0;
    qsort(s->rows, s->count, sizeof *s->rows, by_birth);
    while (next < s->count || used > 0) {
        if (used == 0)
            now = s->rows[next].birth;
        while (next < s->count && s->rows[next].birth == now)
            heap_push(s, &used, next++);
        struct piece top = s->rows[s->heap[0]];
        const uint64_t until =
            next < s->count && s->rows[next].birth < top.death ? s->rows[next].birth : top.death;
        top.birth = now;
        top.death = until;
        count = append_piece(out, count, top);
        now = until;
        while (used > 0 && s->rows[s->heap[0]].death <= now)
            heap_pop(s, &used);
    }
    return count;
}
