#include "planner/period/align.h"

#include <stdlib.h>

#define REACH 16 /* the most tokens by which string and loop may shift against each other */
#define BAND (2 * REACH + 1) /* number of shifts */
#define ROWS 64              /* tokens that are aligned at once */
#define KEPT 48              /* of the ROWS aligned tokens, how many keep their places */
#define LEAST_SHARE 3        /* of a stretch's tokens at least 1 / LEAST_SHARE must match */
/* score of a cell of the alignment's table that no alignment can reach */
#define IMPOSSIBLE (-(1 << 20))
#define SAME 2
#define OTHER (-1)

/* which of the two sequences, string and loop, advances by one token */
enum move { BOTH, STRING, LOOP };

/* A stretch of the string's tokens that is aligned with the loop's tokens from `place` on. */
struct stretch {
    const uint64_t *tokens;
    const struct token_loop *loop;
    uint32_t place, rows;
    int32_t scores[2][BAND]; /* scores of the last two rows, by shift */
    uint8_t moves[ROWS + 1][BAND];
};

static bool is_same(const struct stretch *stretch, uint32_t row, uint32_t column) {
    const uint32_t place = (stretch->place + column) % stretch->loop->count;
    return stretch->tokens[row] == stretch->loop->tokens[place];
}

/* Finds the best alignment of the stretch's first `row` tokens with row + shift - REACH tokens of
 * the loop. */
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

/*
 * Runs the algorithm of Needleman and Wunsch (1970) in a band. Returns the best shift at the end.
 */
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

/*
 * Follows the best alignment back from its end. For each token of the string it writes the loop's
 * tokens up to there (`columns`), and the token's place or ALIGN_NOWHERE; returns how many have a
 * place.
 */
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

/* Aligns a stretch that begins where the string differs from the loop, and moves *place on. Returns
 * how many tokens have been aligned; 0: the string no longer follows the loop. */
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

/* What a pass over the string counts for one of the loop's tokens. */
struct tally {
    uint32_t hits;      /* how often the string has the token at its place in the loop */
    uint32_t lead;      /* votes for the candidate less those for others (Boyer and Moore) */
    uint32_t followed;  /* how often the string had the candidate next */
    uint64_t candidate; /* a token that the string has next where the loop has another one */
};

/* Whether the string's token at `at` has a place in the loop, and the string's next token has
 * none. */
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

/*
 * Removes tokens that came in at most a third of the passes, and inserts candidates that followed
 * more than a third of the times. No candidate is inserted after a removed token: the next
 * alignment may show it again.
 */
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
