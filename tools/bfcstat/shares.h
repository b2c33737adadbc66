/*
 * Shares: how many of something the exporter takes of each user, so that none crowds out the
 * others.
 *
 * A user may own files under 65,536 subordinate ids (subuid(5)). These ids, and the ranges that
 * kubelets assign, come in blocks of that size, so each block has a bound, too. The block below
 * 65,536, with the ids of the system's own users, has none.
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

/* How many shares each user, each block of users and all have taken. All members but the bounds
 * must be zero at first. */
struct shares {
    size_t user, block, all; /* bounds on the shares of a user, of a block of users, and of all */
    size_t taken;
    struct share_list users, blocks;
};

/* Takes one share of the user. False: the user, its block or all users together have reached their
 * bound. */
bool shares_take(struct shares *shares, uint32_t uid);

#endif
