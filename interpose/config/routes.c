/* Records in which ways each hook was found, in a hash table by the address of its name. */
#include "interpose/config/routes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "interpose/config/log.h"

/* larger than the number of hooks, so the table never fills up */
enum { PLACES = 512 };

static struct place {
    const char *name; /* atomic; NULL: the entry is unused */
    unsigned seen;    /* atomic: bit r is set if the hook was found in way r (enum bfc_route) */
} places[PLACES];

static bool begun; /* atomic: whether BFC_LOG is known, so that bfc_routes_note logs at once */

static void write_route(const char *name, unsigned route) {
    static const char *const words[BFC_ROUTES] = {"the symbol table", "dlsym", "cuGetProcAddress",
                                                  "the runtime's entry"};
    bfc_log(BFC_LOG_DEBUG, "hook %s: found by %s", name, words[route]);
}

/* Returns the hash table's entry for a name, a new one if needed. NULL: the table is full. */
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

/* Sets the bit of `route` and then reads `begun`; bfc_routes_begin sets `begun` and then reads the
 * bits. So if both run at once, at least one of them logs the route, perhaps both. */
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
