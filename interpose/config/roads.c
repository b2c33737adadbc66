/* Roads: a table of names and the roads that were seen, by the names' addresses. */
#include "interpose/config/roads.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "interpose/config/log.h"

/* More than there are hooks: it never fills up. */
enum { PLACES = 512 };

static struct place {
    const char *name; /* atomic; NULL: free */
    unsigned seen;    /* atomic: a bit for each road */
} places[PLACES];

static bool begun; /* atomic */

static void write_road(const char *name, unsigned road) {
    static const char *const words[BFC_ROADS] = {"the symbol table", "dlsym", "cuGetProcAddress",
                                                 "the runtime's entry"};
    bfc_log(BFC_LOG_DEBUG, "hook %s: found by %s", name, words[road]);
}

/* NULL: there is no room. */
static struct place *place_of_name(const char *name) {
    size_t first = (uintptr_t)name / 8;
    for (size_t i = 0; i < PLACES; i++) {
        struct place *place = &places[(first + i) % PLACES];
        const char *there = NULL;
        if (__atomic_compare_exchange_n(&place->name, &there, name, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE) ||
            there == name)
            return place;
    }
    return NULL;
}

/* Noted, then looked; who begins does the two the other way round. A road may be written twice. */
void bfc_road_note(const char *name, enum bfc_road road) {
    struct place *place = place_of_name(name);
    if (place && !(__atomic_fetch_or(&place->seen, 1u << road, __ATOMIC_SEQ_CST) & 1u << road) &&
        __atomic_load_n(&begun, __ATOMIC_SEQ_CST))
        write_road(name, road);
}

void bfc_roads_begin(void) {
    __atomic_store_n(&begun, true, __ATOMIC_SEQ_CST);
    for (size_t i = 0; bfc_log_shows(BFC_LOG_DEBUG) && i < PLACES; i++) {
        unsigned seen = __atomic_load_n(&places[i].seen, __ATOMIC_SEQ_CST);
        for (unsigned road = 0; road < BFC_ROADS; road++)
            if (seen & 1u << road)
                write_road(places[i].name, road);
    }
}
