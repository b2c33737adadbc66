/*
 * Aligns a string of tokens with a loop of tokens that the string repeats with differences (tokens
 * changed, missing or inserted), and corrects the loop by what many of the repetitions have.
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
    uint32_t *places; /* by token: how many of the loop's tokens, counted through all repetitions,
                         come before it; ALIGN_NOWHERE: it is not in the loop */
    uint32_t covered; /* number of the string's tokens up to where it stops following the loop */
    uint32_t passed;  /* the loop's tokens up to there, counted through all repetitions */
    uint32_t matched; /* number of the string's tokens that have a place in the loop */
};

/* Aligns the string, from token 0 on, with the loop, from its first token on. `places` has room for
 * n. O(n) if little differs, else up to some hundred times as much. */
void align(struct alignment *alignment, const uint64_t *tokens, uint32_t n,
           const struct token_loop *loop);

/*
 * Removes tokens from the loop that few of its repetitions have, and inserts tokens that many have,
 * as far as one alignment with it shows. Returns whether the loop changed; false also without room
 * or host memory.
 */
bool align_settle(struct token_loop *loop, const struct alignment *alignment,
                  const uint64_t *tokens);

#endif
