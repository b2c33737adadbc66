/*
 * Compares a stream of a program's events with a loop: a list of events that the stream repeats
 * with differences, since events are changed, missing or inserted. Each event, an allocation or a
 * free, is given as a number, its token; equal tokens count as the same event. Aligning means to
 * pair the events of the stream with those of the repeated loop so that many pairs are equal. Then
 * the loop is corrected, so that it has the events that many of the repetitions have.
 */
#ifndef BFC_PLAN_ALIGN_H
#define BFC_PLAN_ALIGN_H

#include <stdbool.h>
#include <stdint.h>

#define ALIGN_NOWHERE UINT32_MAX

struct token_loop {
    uint64_t *tokens;
    uint32_t count, room;
};

struct alignment {
    /* For each event of the stream its place: how many of the loop's events come before it, those
     * of all earlier repetitions included. ALIGN_NOWHERE: the event is not in the loop. */
    uint32_t *places;
    /* number of the stream's events up to the last one that has a place in the loop */
    uint32_t covered;
    /* number of the loop's events, counted over all repetitions, up to the last one that is the
     * place of an event of the stream */
    uint32_t passed;
    uint32_t matched; /* how many of the stream's events have a place in the loop */
};

/* Aligns a stream of n events, given by their tokens, with repetitions of the loop; both begin with
 * their first events. `places` of the alignment has room for n elements. It takes O(n) if few
 * events differ from the loop, and up to some hundred times as long if many do. */
void align(struct alignment *alignment, const uint64_t *tokens, uint32_t n,
           const struct token_loop *loop);

/*
 * Removes from the loop the events that few of its repetitions in the stream have, and inserts
 * events that many have, as the alignment of the stream with the loop shows. Returns whether the
 * loop changed. It also returns false if the loop has no room for more events or the host has no
 * memory.
 */
bool align_settle(struct token_loop *loop, const struct alignment *alignment,
                  const uint64_t *tokens);

#endif
