/*
 * Shares: how many of something the exporter takes of each user, so that none crowds out the
 * others.
 *
 * A user may have subordinate ids, to own files by 65,536 other numbers (subuid(5)). They, and the
 * ranges that kubelets hand out, come in blocks of that size, so a block of numbers has a bound
 * too; the block of the system's own users, below 65,536, has none.
 *
 * Thread-safety: none needed; one thread.
 */
#ifndef BFC_TOOLS_SHARES_H
#define BFC_TOOLS_SHARES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The largest value that the bound `all` of struct shares may have. */
#define MOST_SHARES 2048u

struct share_list {
    struct {
        uint32_t key;
        size_t count;
    } list[MOST_SHARES];
    size_t count;
};

/* Zero but for the bounds at first. */
struct shares {
    size_t user, block, all; /* bounds */
    size_t taken;
    struct share_list users, blocks;
};

/* False: that user, its block, or all together have as many as they may. */
bool shares_take(struct shares *shares, uint32_t uid);

#endif
