#include "tools/bfcstat/shares.h"

#define BLOCK_BITS 16

/* Returns the counter of the user or block of users whose id is `key`; a new one begins at 0. The
 * list has room for MOST_SHARES keys and cannot overflow: each key in it has taken at least one
 * share, and all keys together cannot take more than MOST_SHARES. */
static size_t *count_of(struct share_list *shares, uint32_t key) {
    size_t i = 0;
    while (i < shares->count && shares->list[i].key != key)
        i++;
    if (i == shares->count)
        shares->list[shares->count++].key = key;
    return &shares->list[i].count;
}

bool shares_take(struct shares *shares, uint32_t uid) {
    if (shares->taken == shares->all)
        return false;
    uint32_t block = uid >> BLOCK_BITS;
    size_t *of_block = block ? count_of(&shares->blocks, block) : NULL;
    if (of_block && *of_block == shares->block)
        return false;
    size_t *of_user = count_of(&shares->users, uid);
    if (*of_user == shares->user)
        return false;
    ++*of_user;
    if (of_block)
        ++*of_block;
    shares->taken++;
    return true;
}
