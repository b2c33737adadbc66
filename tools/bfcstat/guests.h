/*
 * The exporter's guests: its connections, of which nobody may take the place of all others.
 *
 * Thread-safety: none needed; one thread.
 */
#ifndef BFC_TOOLS_GUESTS_H
#define BFC_TOOLS_GUESTS_H

#include <stdbool.h>
#include <stdint.h>

/* Who stay at a time. */
#define MOST_GUESTS 256u
/* Who were turned out keep their sockets until the server has noticed. */
#define MOST_SOCKETS (2 * MOST_GUESTS)

struct guest {
    int socket; /* -1: free */
    bool leaving;
    bool served; /* an answer is on its way */
    uint64_t since_ns;
};

struct guests {
    struct guest list[MOST_SOCKETS];
};

void guests_begin(struct guests *guests);

/*
 * Lets one more in; where there are MOST_GUESTS, another goes for it: who has not asked yet before
 * who is served, and of those who came first. NULL: there is no place at all.
 */
struct guest *guests_add(struct guests *guests, int socket);

/* The socket is closed. */
void guests_remove(struct guest *guest);

/* Turns out the guests that came long ago. A guest that sends or takes a byte now and then is never
 * idle, so it cannot be turned out for that. */
void guests_turn_out_old(struct guests *guests);

/* Turns out all who are served: their answers' memory is needed. */
void guests_turn_out_served(struct guests *guests);

#endif
