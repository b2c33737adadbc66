#include "planner/period/align.h"

#include <stdlib.h>

/* by how many events the program's sequence of events (the stream) and the repeated loop may be
 * shifted against each other in one alignment */
#define REACH 16
#define BAND (2 * REACH + 1) /* number of possible shifts, from -REACH to REACH */
#define ROWS 64              /* how many events of the stream are aligned at once */
/* of the ROWS events that are aligned at once only the first KEPT get their places in the loop: the
 * others are aligned again, together with the events that follow them, which may change their
 * places */
#define KEPT 48
/* at least 1 / LEAST_SHARE of the events that are aligned at once must be equal to their partners
 * in the loop, else the stream no longer follows the loop */
#define LEAST_SHARE 3
/* the score of those cells of an alignment's table of scores that no alignment can reach; it is
 * below all real scores */
#define IMPOSSIBLE (-(1 << 20))
#define SAME 2
#define OTHER (-1)

/* a step of an alignment: to the next event of the stream alone (STRING), to that of the loop alone
 * (LOOP), or to both */
enum move { BOTH, STRING, LOOP };

/* Events of the stream that are aligned at once, as numbers (`tokens`), with the events of the loop
 * from index `place` on. */
struct stretch {
    const uint64_t *tokens;
    const struct token_loop *loop;
    uint32_t place, rows;
    /* the last two rows of the table of scores; element REACH + s of a row is the score if the
     * stream and the loop are shifted against each other by s events */
    int32_t scores[2][BAND];
    uint8_t moves[ROWS + 1][BAND];
};

static bool is_same(const struct stretch *stretch, uint32_t row, uint32_t column) {
    const uint32_t place = (stretch->place + column) % stretch->loop->count;
    return stretch->tokens[row] == stretch->loop->tokens[place];
}

/* Computes a cell of the table: the score of the best alignment of the stretch's first `row` events
 * with the loop's first row + shift - REACH events, and the last step of that alignment. */
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
 * Fills in the table of scores (Needleman and Wunsch, 1970), but only for shifts from -REACH to
 * REACH of the stream against the loop. Returns REACH plus the shift at which the stretch's end has
 * the best score.
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
 * Follows the best alignment back from its end. For each event of the stretch, `columns` gets how
 * many of the loop's events the alignment has passed by then, and `places` the event's place in the
 * loop, or ALIGN_NOWHERE if it has none. Returns how many events got a place.
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

/* Aligns the stream's next events, the first of which differs from the loop's event at *place. Adds
 * to *place how many of the loop's events it has passed. Returns how many events of the stream it
 * has aligned; 0: the stream no longer follows the loop. */
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

/* What is counted for one event of the loop, over all its repetitions in the stream, to correct the
 * loop. */
struct tally {
    uint32_t hits; /* how often the stream has the event at its place in the loop */
    /* how many times `candidate` was counted, less how many times other events were (the majority
     * vote of Boyer and Moore) */
    uint32_t lead;
    uint32_t followed; /* how often the stream had `candidate` right after this event of the loop */
    /* the token of an event that the stream has right after this event of the loop, though that
     * event has no place in the loop; if one token came in more than half of all such cases, it is
     * this one */
    uint64_t candidate;
};

/* Returns whether event number `at` of the stream has a place in the loop, but the stream's next
 * event has none. */
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
 * Removes from the loop the events that at most a third of its repetitions have. After an event
 * that stays, it inserts tally.candidate, an event that was not in the loop, if that came there
 * more than once, and after more than a third of the occurrences of the event that stays. Nothing
 * is inserted after a removed event: if the candidate is really part of the loop, the next
 * alignment, with the corrected loop, finds it again after another event.
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
