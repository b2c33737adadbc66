#include "planner/period/lags.h"

#include <stdlib.h>

#include "base/mix.h"

/* How many events in a row form a stretch; the stream repeats itself where equal stretches come
 * again. Stretches must be short: even if a fifth of all events changes, some stretches have no
 * changed event. */
#define GRAM 4
/* Each stretch of events votes for its distances to the next HOPS stretches that are equal to it,
 * not only for the shortest, which may be that of a repetition within the loop. */
#define HOPS 8
/* A distance that was found by votes may be a few events off. Among the distances near it, the one
 * is taken at which the most of the stream's first FIRST stretches are repeated. */
#define FIRST 48
#define NOWHERE UINT32_MAX

struct voting {
    uint64_t *grams; /* for each stretch, by the index of its first event: a hash of its events */
    /* for each stretch, by the index of its first event: the index of the next equal stretch, or
     * NOWHERE */
    uint32_t *next;
    /* hash table of stretches: of equal stretches, the index of the first that comes in the stream;
     * NOWHERE in a free slot */
    uint32_t *table;
    /* for each distance: how many stretches voted for it; once all votes are counted, how many
     * voted for it or a smaller one, so that the votes of a range of distances are a difference of
     * two elements */
    uint32_t *votes;
    uint32_t n;    /* number of stretches: of GRAM allocations in a row, from each on */
    uint32_t mask; /* the number of slots in `table`, a power of two, less 1 */
};

static void enter_gram(struct voting *voting, uint32_t at) {
    uint32_t i = (uint32_t)voting->grams[at] & voting->mask;
    while (voting->table[i] != NOWHERE && voting->grams[voting->table[i]] != voting->grams[at])
        i = (i + 1) & voting->mask;
    voting->next[at] = voting->table[i];
    voting->table[i] = at;
}

static void vote_for_lags(struct voting *voting, uint32_t at) {
    uint32_t other = voting->next[at];
    for (int hop = 0; hop < HOPS && other != NOWHERE; hop++, other = voting->next[other])
        voting->votes[other - at]++;
}

static void hold_vote(struct voting *voting, const uint64_t *tokens) {
    for (uint32_t i = 0; i < voting->n; i++)
        for (uint32_t t = 0; t < GRAM; t++)
            voting->grams[i] = bfc_mix_join(voting->grams[i], tokens[i + t]);
    for (uint32_t i = 0; i <= voting->mask; i++)
        voting->table[i] = NOWHERE;
    for (uint32_t i = voting->n; i-- > 0;)
        enter_gram(voting, i);
    for (uint32_t i = 0; i < voting->n; i++)
        vote_for_lags(voting, i);
    for (uint32_t i = 1; i <= voting->n; i++)
        voting->votes[i] += voting->votes[i - 1];
}

/* Returns how far two distances may be apart and still count as one: about the square root of the
 * distance, because inserted and missing events change the distance between equal stretches. */
static uint32_t scatter_of(uint32_t lag) {
    uint32_t root = 1;
    while (root * root < lag)
        root++;
    return root;
}

static uint32_t votes_near(const struct voting *voting, uint32_t lag, uint32_t scatter) {
    const uint32_t last = lag + scatter < voting->n ? lag + scatter : voting->n;
    return voting->votes[last] - voting->votes[lag > scatter ? lag - scatter - 1 : 0];
}

static bool is_taken(const struct lags *lags, uint32_t lag, uint32_t scatter) {
    for (uint32_t i = 0; i < lags->count; i++)
        if (lags->list[i] <= lag + scatter && lag <= lags->list[i] + scatter)
            return true;
    return false;
}

static uint32_t best_lag(const struct voting *voting, const struct lags *lags) {
    uint32_t best = 0, most = 1, scatter = 1;
    for (uint32_t lag = LAGS_LEAST; lag <= voting->n / 2; lag++) {
        scatter += scatter * scatter < lag;
        const uint32_t votes = votes_near(voting, lag, scatter);
        if (votes > most && !is_taken(lags, lag, scatter)) {
            most = votes;
            best = lag;
        }
    }
    return best;
}

/* Returns how many of the first FIRST stretches of events are repeated at this distance. */
static uint32_t first_again(const struct voting *voting, uint32_t lag) {
    uint32_t again = 0;
    for (uint32_t at = 0; at < FIRST && at + lag < voting->n; at++)
        again += voting->grams[at] == voting->grams[at + lag];
    return again;
}

/* Returns the distance near `lag` at which the most of the first FIRST stretches of events are
 * repeated. */
static uint32_t exact_lag(const struct voting *voting, uint32_t lag) {
    const uint32_t scatter = scatter_of(lag);
    uint32_t best = lag, most = first_again(voting, lag);
    for (uint32_t near = lag > scatter ? lag - scatter : 1; near <= lag + scatter; near++) {
        const uint32_t again = first_again(voting, near);
        if (again > most) {
            most = again;
            best = near;
        }
    }
    return best;
}

static bool make_voting(struct voting *voting, uint32_t n) {
    uint32_t room = 64;
    while (room / 2 < n)
        room *= 2;
    *voting = (struct voting){.grams = calloc(n, sizeof *voting->grams),
                              .next = calloc(n, sizeof *voting->next),
                              .table = calloc(room, sizeof *voting->table),
                              .votes = calloc((size_t)n + 1, sizeof *voting->votes),
                              .n = n,
                              .mask = room - 1};
    return voting->grams && voting->next && voting->table && voting->votes;
}

/* Replaces each distance by the one near it at which the stream's beginning is repeated best. If
 * two distances become equal by this, only one is kept. */
static void make_exact(struct lags *lags, const struct voting *voting) {
    const struct lags near = *lags;
    lags->count = 0;
    for (uint32_t i = 0; i < near.count; i++) {
        const uint32_t lag = exact_lag(voting, near.list[i]);
        if (!is_taken(lags, lag, 0))
            lags->list[lags->count++] = lag;
    }
}

bool lags_find(struct lags *lags, const uint64_t *tokens, uint32_t n) {
    struct voting voting;
    *lags = (struct lags){.count = 0};
    if (n < 2 * LAGS_LEAST)
        return true;
    const bool good = make_voting(&voting, n - GRAM + 1);
    if (good)
        hold_vote(&voting, tokens);
    uint32_t lag = 0;
    while (good && lags->count < LAGS_MOST && (lag = best_lag(&voting, lags)))
        lags->list[lags->count++] = lag;
    make_exact(lags, &voting);
    free(voting.grams);
    free(voting.next);
    free(voting.table);
    free(voting.votes);
    return good;
}
