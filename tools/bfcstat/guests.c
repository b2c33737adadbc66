#include "tools/bfcstat/guests.h"

#include <stddef.h>
#include <sys/socket.h>

#include "base/clock.h"

#define OLDEST_NS UINT64_C(30000000000)

void guests_begin(struct guests *guests) {
    for (unsigned i = 0; i < MOST_SOCKETS; i++)
        guests->list[i].socket = -1;
}

/* Shuts the connection down. The HTTP server (libmicrohttpd) then reads the end of the client's
 * input, and closes the socket. */
static void turn_out(struct guest *guest) {
    shutdown(guest->socket, SHUT_RDWR);
    guest->leaving = true;
}

static bool guest_stays(const struct guest *guest) {
    return guest->socket >= 0 && !guest->leaving;
}

static bool goes_before(const struct guest *guest, const struct guest *other) {
    if (guest->served != other->served)
        return other->served;
    return guest->since_ns < other->since_ns;
}

static void make_room(struct guests *guests) {
    struct guest *first = NULL;
    unsigned count = 0;
    for (unsigned i = 0; i < MOST_SOCKETS; i++) {
        struct guest *guest = &guests->list[i];
        if (!guest_stays(guest))
            continue;
        count++;
        if (!first || goes_before(guest, first))
            first = guest;
    }
    if (count >= MOST_GUESTS)
        turn_out(first);
}

struct guest *guests_add(struct guests *guests, int socket) {
    make_room(guests);
    for (unsigned i = 0; i < MOST_SOCKETS; i++)
        if (guests->list[i].socket < 0) {
            guests->list[i] = (struct guest){.socket = socket, .since_ns = bfc_now_ns()};
            return &guests->list[i];
        }
    return NULL;
}

void guests_remove(struct guest *guest) {
    guest->socket = -1;
}

void guests_turn_out_old(struct guests *guests) {
    uint64_t now = bfc_now_ns();
    for (unsigned i = 0; i < MOST_SOCKETS; i++)
        if (guest_stays(&guests->list[i]) && now - guests->list[i].since_ns > OLDEST_NS)
            turn_out(&guests->list[i]);
}

void guests_turn_out_served(struct guests *guests) {
    for (unsigned i = 0; i < MOST_SOCKETS; i++)
        if (guest_stays(&guests->list[i]) && guests->list[i].served)
            turn_out(&guests->list[i]);
}
