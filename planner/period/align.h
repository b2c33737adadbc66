/*
 * Aligns a string of tokens with a loop that it goes through again and again, where some tokens are
 * others, are missing, or come in between; and finds what most of the repetitions have.
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
    uint32_t *places; /* of each token: how many of the loop's tokens, through its repetitions, come
                         before it; or ALIGN_NOWHERE */
    uint32_t covered; /* tokens, up to where the string follows the loop no more */
    uint32_t passed;  /* the loop's tokens, as far as that */
    uint32_t matched; /* tokens with a place */
};

/* From token 0 and the loop's first on. `places` has room for n. O(n) if little differs, else up to
 * some hundred times as much. */
void align(struct alignment *alignment, const uint64_t *tokens, uint32_t n,
           const struct token_loop *loop);

/*
 * Makes the loop what most of its repetitions have, as far as one pass shows it, by an alignment
 * with it. Returns whether it changed; false as well if there is no room or no host memory.
 */
bool align_settle(struct token_loop *loop, const struct alignment *alignment,
                  const uint64_t *tokens);

#endif
