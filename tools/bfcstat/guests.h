/*
 * The guests of bfcstat serve: its connections. Their number and age are bounded so that no client
 * can keep all others out.
 *
 * Thread-safety: none needed; one thread.
 */
#ifndef BFC_TOOLS_GUESTS_H
#define BFC_TOOLS_GUESTS_H

#include <stdbool.h>
#include <stdint.h>

/* The most connections that are open at a time, without those that were shut down. */
#define MOST_GUESTS 256u
/* A connection that was shut down keeps its socket until the server has noticed, so there is room
 * for more sockets than guests. */
#define MOST_SOCKETS (2 * MOST_GUESTS)

struct guest {
    int socket; /* file descriptor; -1: the element is unused */
    bool leaving;
    bool served; /* whether an answer is being sent */
    uint64_t since_ns;
};

struct guests {
    struct guest list[MOST_SOCKETS];
};

void guests_begin(struct guests *guests);

/*
 * Adds a connection. If there are MOST_GUESTS already, one of them is shut down: rather one that
 * has sent no request yet than one that is served, and of these the oldest. NULL: there is no room
 * for another socket.
 */
struct guest *guests_add(struct guests *guests, int socket);

/* Must be called when the guest's socket is closed. */
void guests_remove(struct guest *guest);

/* Shuts down connections that are older than 30 s. A client that sends or takes a byte now and then
 * would never count as idle, and would stay for ever. */
void guests_turn_out_old(struct guests *guests);

/* Shuts down all connections that are served, because the memory of their answers is needed. */
void guests_turn_out_served(struct guests *guests);

#endif
