/* A table of names, and the routes by which each was reached, hashed by the names' addresses. */
#include "interpose/config/routes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "interpose/config/log.h"

/* There are fewer names of hooks than entries in the table, so the table never fills up. */
enum { PLACES = 512 };

static struct place {
    const char *name; /* atomic; NULL: free */
    unsigned seen;    /* atomic: one bit for each route */
} places[PLACES];

static bool begun; /* atomic: the options are read, so routes are written at once */

static void write_route(const char *name, unsigned route) {
    static const char *const words[BFC_ROUTES] = {"the symbol table", "dlsym", "cuGetProcAddress",
                                                  "the runtime's entry"};
    bfc_log(BFC_LOG_DEBUG, "hook %s: found by %s", name, words[route]);
}

/* Returns the entry of a name, which is made now if there is none. NULL: there is no room. */
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

/* Marks the route, and then checks `begun`, while bfc_routes_begin sets `begun` and then reads the
 * marks. So no route is missed, but one may be written twice. */
void bfc_routes_note(const char *name, enum bfc_route route) {
    struct place *place = place_of_name(name);
    if (place && !(bfc_fetch_or_seq_cst(&place->seen, 1u << route) & 1u << route) &&
        bfc_load_seq_cst(&begun))
        write_route(name, route);
}

void bfc_routes_begin(void) {
    bfc_store_seq_cst(&begun, true);
    for (size_t i = 0; bfc_log_shows(BFC_LOG_DEBUG) && i < PLACES; i++) {
        unsigned seen = bfc_load_seq_cst(&places[i].seen);
        for (unsigned route = 0; route < BFC_ROUTES; route++)
            if (seen & 1u << route)
                write_route(places[i].name, route);
    }
}
