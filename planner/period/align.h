/*
 * Aligns a string of tokens with a loop. The loop is a shorter string that the first one repeats
 * with differences: changed, missing or inserted tokens. Then corrects the loop, so that it has the
 * tokens that many of the repetitions have. A token is a number that stands for an allocation or a
 * free.
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
    /* By token of the string: its place, which is the number of the loop's tokens before it, all
     * repetitions counted. ALIGN_NOWHERE: the token is not in the loop. */
    uint32_t *places;
    uint32_t covered; /* how many of the string's first tokens follow the loop */
    /* how many tokens of the loop, all repetitions counted, the first `covered` tokens of the
     * string go through */
    uint32_t passed;
    uint32_t matched; /* how many of the string's tokens have a place */
};

/* Aligns the string with repetitions of the loop, both from their first tokens on. `places` has
 * room for n elements. It takes O(n) if few tokens differ, and up to some hundred times as long if
 * many differ. */
void align(struct alignment *alignment, const uint64_t *tokens, uint32_t n,
           const struct token_loop *loop);

/*
 * Removes tokens from the loop that few of its repetitions in the string have, and inserts tokens
 * that many have, as far as the alignment shows. Returns whether the loop changed. It also returns
 * false if the loop has no room for more tokens or the host has no memory.
 */
bool align_settle(struct token_loop *loop, const struct alignment *alignment,
                  const uint64_t *tokens);

#endif
