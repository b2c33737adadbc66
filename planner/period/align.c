#include "planner/period/align.h"

#include <stdlib.h>

#define REACH 16                /* how far both may shift against each other in a stretch */
#define BAND (2 * REACH + 1)    /* shifts */
#define ROWS 64                 /* tokens of a stretch... */
#define KEPT 48                 /* ...of which the first ones are settled */
#define LEAST_SHARE 3           /* a part of a stretch must match, else the loop is left */
#define IMPOSSIBLE (-(1 << 20)) /* a score */
#define SAME 2
#define OTHER (-1)

enum move { BOTH, STRING, LOOP }; /* which goes on by one token */

/* A stretch of the string from `at` on, and of the loop from `place` on. */
struct stretch {
    const uint64_t *tokens;
    const struct token_loop *loop;
    uint32_t place, rows;
    int32_t scores[2][BAND]; /* of the last two rows, by shift */
    uint8_t moves[ROWS + 1][BAND];
};

static bool is_same(const struct stretch *stretch, uint32_t row, uint32_t column) {
    const uint32_t place = (stretch->place + column) % stretch->loop->count;
    return stretch->tokens[row] == stretch->loop->tokens[place];
}

/* The best way to `row` tokens of the string and as many of the loop, shifted. */
static void score_cell(struct stretch *stretch, uint32_t row, uint32_t shift) {
    int32_t *scores = stretch->scores[row % 2];
    const int32_t *before = stretch->scores[(row + 1) % 2];
    int32_t best = IMPOSSIBLE;
    enum move move = STRING;
    if (row + shift < REACH) {
        scores[shift] = best;
        return;
    }
    if (row > 0 && row + shift > REACH) {
        move = BOTH;
        best = before[shift] + (is_same(stretch, row - 1, row + shift - REACH - 1) ? SAME : OTHER);
    }
    if (row > 0 && shift + 1 < BAND && before[shift + 1] + OTHER > best) {
        move = STRING;
        best = before[shift + 1] + OTHER;
    }
    if (shift > 0 && row + shift > REACH && scores[shift - 1] + OTHER > best) {
        move = LOOP;
        best = scores[shift - 1] + OTHER;
    }
    scores[shift] = row + shift == REACH && row == 0 ? 0 : best;
    stretch->moves[row][shift] = (uint8_t)move;
}

/* Needleman and Wunsch (1970), in a band. Returns the best shift at the end. */
static uint32_t score_all(struct stretch *stretch) {
    for (uint32_t row = 0; row <= stretch->rows; row++)
        for (uint32_t shift = 0; shift < BAND; shift++)
            score_cell(stretch, row, shift);
    const int32_t *scores = stretch->scores[stretch->rows % 2];
    uint32_t best = REACH;
    for (uint32_t shift = 0; shift < BAND; shift++)
        if (scores[shift] > scores[best])
            best = shift;
    return best;
}

/* How many of the loop's tokens come before each of the string's, back from the end; of one that
 * has no like, ALIGN_NOWHERE. Returns how many have. */
static uint32_t trace_back(const struct stretch *stretch, uint32_t shift, uint32_t *columns,
                           uint32_t *places) {
    uint32_t row = stretch->rows, matched = 0;
    while (row > 0) {
        const uint32_t column = row + shift - REACH;
        const enum move move = stretch->moves[row][shift];
        if (move == LOOP) {
            shift--;
            continue;
        }
        const bool same = move == BOTH && is_same(stretch, row - 1, column - 1);
        columns[--row] = column;
        places[row] = same ? stretch->place + column - 1 : ALIGN_NOWHERE;
        matched += same;
        shift += move == STRING;
    }
    return matched;
}

/* Settles some tokens of the string, at which it differs from the loop. Returns how many; 0: it
 * follows the loop no more. */
static uint32_t align_stretch(struct alignment *alignment, const uint64_t *tokens, uint32_t at,
                              uint32_t n, const struct token_loop *loop, uint32_t *place) {
    struct stretch stretch = {.tokens = tokens + at,
                              .loop = loop,
                              .place = *place,
                              .rows = n - at < ROWS ? n - at : ROWS};
    uint32_t columns[ROWS], places[ROWS];
    const uint32_t shift = score_all(&stretch);
    const uint32_t kept = stretch.rows < ROWS ? stretch.rows : KEPT;
    if (LEAST_SHARE * trace_back(&stretch, shift, columns, places) < stretch.rows)
        return 0;
    for (uint32_t i = 0; i < kept; i++)
        alignment->places[at + i] = places[i];
    *place += columns[kept - 1];
    return kept;
}

static void note_match(struct alignment *alignment, uint32_t at) {
    if (alignment->places[at] == ALIGN_NOWHERE)
        return;
    alignment->matched++;
    alignment->covered = at + 1;
    alignment->passed = alignment->places[at] + 1;
}

void align(struct alignment *alignment, const uint64_t *tokens, uint32_t n,
           const struct token_loop *loop) {
    uint32_t at = 0, place = 0;
    alignment->matched = alignment->covered = alignment->passed = 0;
    while (at < n) {
        uint32_t settled = 1;
        if (tokens[at] == loop->tokens[place % loop->count])
            alignment->places[at] = place++;
        else if (!(settled = align_stretch(alignment, tokens, at, n, loop, &place)))
            break;
        for (; settled > 0; settled--)
            note_match(alignment, at++);
    }
}

/* Of each of the loop's tokens. */
struct tally {
    uint32_t hits;      /* how often it came */
    uint32_t lead;      /* of the candidate over others (Boyer and Moore's vote) */
    uint32_t followed;  /* how often the candidate came next */
    uint64_t candidate; /* which the loop does not have there */
};

/* What came next, though the loop does not have it. */
static bool is_unforeseen(const struct alignment *alignment, uint32_t at) {
    return at + 1 < alignment->covered && alignment->places[at] != ALIGN_NOWHERE &&
           alignment->places[at + 1] == ALIGN_NOWHERE;
}

static void count_votes(struct tally *tallies, const struct alignment *alignment,
                        const uint64_t *tokens, uint32_t length) {
    for (uint32_t i = 0; i < alignment->covered; i++) {
        if (alignment->places[i] == ALIGN_NOWHERE)
            continue;
        struct tally *tally = &tallies[alignment->places[i] % length];
        tally->hits++;
        if (!is_unforeseen(alignment, i))
            continue;
        if (tally->lead == 0)
            tally->candidate = tokens[i + 1];
        tally->lead += tally->candidate == tokens[i + 1] ? 1 : UINT32_MAX;
    }
    for (uint32_t i = 0; i < alignment->covered; i++)
        if (is_unforeseen(alignment, i)) {
            struct tally *tally = &tallies[alignment->places[i] % length];
            tally->followed += tally->candidate == tokens[i + 1];
        }
}

/* What most passes show. What stands behind a token that goes is for the next time. */
static bool rewrite_loop(struct token_loop *loop, const struct tally *tallies, uint32_t passed) {
    uint64_t *tokens = malloc((size_t)loop->room * sizeof *tokens);
    uint32_t count = 0;
    bool changed = false;
    for (uint32_t i = 0; tokens && i < loop->count && count + 1 < loop->room; i++) {
        const uint32_t passes = passed / loop->count + (i < passed % loop->count);
        const bool stays = 3 * tallies[i].hits > passes;
        const bool more =
            stays && tallies[i].followed > 1 && 3 * tallies[i].followed > tallies[i].hits;
        if (stays)
            tokens[count++] = loop->tokens[i];
        if (more)
            tokens[count++] = tallies[i].candidate;
        changed = changed || !stays || more;
    }
    if (!changed || count == 0) {
        free(tokens);
        return false;
    }
    free(loop->tokens);
    loop->tokens = tokens;
    loop->count = count;
    return true;
}

bool align_settle(struct token_loop *loop, const struct alignment *alignment,
                  const uint64_t *tokens) {
    struct tally *tallies = calloc(loop->count, sizeof *tallies);
    bool changed = false;
    if (tallies) {
        count_votes(tallies, alignment, tokens, loop->count);
        changed = rewrite_loop(loop, tallies, alignment->passed);
    }
    free(tallies);
    return changed;
}
