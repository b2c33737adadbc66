/*
 * Bounds on how many jobs, pools or counters bfcstat serve handles for each user, so that one user
 * cannot crowd out the others. A share stands for one job, one pool or one set of counters.
 *
 * A user may own files under 65,536 subordinate ids (subuid(5)), so a bound for each user id is not
 * enough. Subordinate ids, and the ranges that Kubernetes assigns to pods, come in blocks of 65,536
 * ids, so each block has a bound, too. Only the block of the ids below 65,536 has no bound, because
 * the system's own users share it.
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

/* The bounds, and how many shares are taken by each user, by each block of users and by all. All
 * fields but the bounds must be zero at first. */
struct shares {
    /* bounds: shares of one user, of one block of users, and of all users */
    size_t user, block, all;
    size_t taken;
    struct share_list users, blocks;
};

/* Takes one share of the user. False: the user, its block or all users together have reached their
 * bound. */
bool shares_take(struct shares *shares, uint32_t uid);

#endif
