#include "planner/problem/sweep.h"

#include <stdlib.h>

#include "planner/common/sort.h"

static bool sort_ends(struct keyed **births, struct keyed **deaths,
                      const struct interval *intervals, uint32_t count) {
    *births = malloc((count + (size_t)1) * sizeof **births);
    *deaths = malloc((count + (size_t)1) * sizeof **deaths);
    if (!*births || !*deaths)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        (*births)[i] = (struct keyed){intervals[i].birth, i};
        (*deaths)[i] = (struct keyed){intervals[i].death, i};
    }
    return sort_keyed(*births, count) && sort_keyed(*deaths, count);
}

__extension__ typedef unsigned __int128 wide;

static void merge_ends(struct sweep *sweep, const struct keyed *births, const struct keyed *deaths,
                       const struct interval *intervals, uint32_t count) {
    wide live = 0;
    /* whether an interval has ended since the last one began; true at first, so that the first
     * interval starts a section */
    bool died = true;
    uint32_t dead = 0;
    for (uint32_t born = 0; born < count; born++) {
        for (; deaths[dead].key <= births[born].key; dead++) {
            live -= intervals[deaths[dead].index].size;
            died = true;
            if (sweep->death)
                sweep->death[deaths[dead].index] = sweep->sections;
        }
        sweep->sections += died;
        died = false;
        if (sweep->birth)
            sweep->birth[births[born].index] = sweep->sections - 1;
        live += intervals[births[born].index].size;
        if (live > sweep->most) {
            sweep->most = live > UINT64_MAX ? UINT64_MAX : (uint64_t)live;
            sweep->most_at = births[born].index;
        }
    }
    for (; sweep->death && dead < count; dead++)
        sweep->death[deaths[dead].index] = sweep->sections;
}

bool sweep_run(struct sweep *sweep, const struct interval *intervals, uint32_t count) {
    struct keyed *births = NULL;
    struct keyed *deaths = NULL;
    const bool good = sort_ends(&births, &deaths, intervals, count);
    sweep->sections = 0;
    sweep->most = 0;
    sweep->most_at = 0;
    if (good)
        merge_ends(sweep, births, deaths, intervals, count);
    free(births);
    free(deaths);
    return good;
}
