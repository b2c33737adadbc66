/*
 * The list of the connections (guests) of bfcstat serve. Their number and age are bounded, so that
 * no client can keep all others out.
 *
 * Thread-safety: none needed; one thread.
 */
#ifndef BFC_TOOLS_GUESTS_H
#define BFC_TOOLS_GUESTS_H

#include <stdbool.h>
#include <stdint.h>

/* How many connections are open at a time at most. Connections that bfcstat has shut down, but
 * whose sockets are not closed yet, do not count. */
#define MOST_GUESTS 256u
/* How many sockets the list has room for. A connection that was shut down keeps its socket until
 * the HTTP server has noticed, so there are more sockets than connections. */
#define MOST_SOCKETS (2 * MOST_GUESTS)

struct guest {
    int socket; /* file descriptor; -1: the element is unused */
    bool leaving;
    bool served; /* whether the metrics are being sent on this connection */
    uint64_t since_ns;
};

struct guests {
    struct guest list[MOST_SOCKETS];
};

void guests_begin(struct guests *guests);

/*
 * Adds a connection that has just been accepted. If there are MOST_GUESTS already, shuts one of
 * them down: the oldest of those that have sent no request yet, or, if all are being sent an
 * answer, the oldest of all. NULL: there is no room for another socket.
 */
struct guest *guests_add(struct guests *guests, int socket);

/* Must be called when a connection's socket is closed. */
void guests_remove(struct guest *guest);

/* Shuts down connections that are older than 30 s. The HTTP server closes only idle connections,
 * and a client that sends or takes a byte now and then would never count as idle. */
void guests_turn_out_old(struct guests *guests);

/* Shuts down all connections on which an answer is being sent, because the memory of those answers
 * is needed. */
void guests_turn_out_served(struct guests *guests);

#endif
