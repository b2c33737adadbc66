/* Roads: a table of names and the roads that were seen, by the names' addresses. */
#include "interpose/config/roads.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
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
        if (bfc_compare_exchange_acq_rel(&place->name, &there, name) || there == name)
            return place;
    }
    return NULL;
}

/*
 * Marks the road, then checks `begun`; bfc_roads_begin sets `begun`, then reads the marks. So no
 * road is missed, but one may be written twice.
 */
void bfc_roads_note(const char *name, enum bfc_road road) {
    struct place *place = place_of_name(name);
    if (place && !(bfc_fetch_or_seq_cst(&place->seen, 1u << road) & 1u << road) &&
        bfc_load_seq_cst(&begun))
        write_road(name, road);
}

void bfc_roads_begin(void) {
    bfc_store_seq_cst(&begun, true);
    for (size_t i = 0; bfc_log_shows(BFC_LOG_DEBUG) && i < PLACES; i++) {
        unsigned seen = bfc_load_seq_cst(&places[i].seen);
        for (unsigned road = 0; road < BFC_ROADS; road++)
            if (seen & 1u << road)
                write_road(places[i].name, road);
    }
}
