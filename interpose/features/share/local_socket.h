/*
 * Short connections between two processes of one user, over a socket in the file system, by which
 * file descriptors can be passed.
 *
 * A message arrives whole or not at all (SOCK_SEQPACKET). Every wait is bounded, no call raises a
 * signal, and every descriptor is close-on-exec. Both processes may run a program that closes all
 * descriptors which it does not know, and then opens its own by the same numbers. So before each
 * use of a descriptor it is checked that the descriptor is still that of the socket; if not, it is
 * neither used nor closed.
 *
 * Thread-safe for different sockets. Errors are in errno. The caller disables cancellation.
 */
#ifndef BFC_INTERPOSE_LOCAL_SOCKET_H
#define BFC_INTERPOSE_LOCAL_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct bfc_local {
    int file; /* the descriptor of the socket; -1: none */
    dev_t device;
    ino_t inode;
};

/* the most file descriptors that one message can carry */
enum { BFC_LOCAL_FILES = 32 };

/* Makes a listening socket at a path, which must not exist; only this user may connect. */
bool bfc_local_listen(struct bfc_local *local, const char *path);

/* Waits at most `ms` milliseconds for a connection, and accepts it if it is from a process of this
 * user; else closes it. False: no connection was accepted. */
bool bfc_local_accept(const struct bfc_local *listener, struct bfc_local *local, unsigned ms);

/* Connects to the socket at a path, if a process of this user listens there. False: no connection
 * was made; errno is ECONNREFUSED if no process listens there any more. */
bool bfc_local_call(struct bfc_local *local, const char *path);

/* Sends a message, with copies of `count` file descriptors. Waits at most `ms` milliseconds until
 * the socket takes the message. False: it was not sent. */
bool bfc_local_send(const struct bfc_local *local, const void *bytes, size_t size, const int *files,
                    unsigned count, unsigned ms);

/* Receives a message of exactly this size, with up to BFC_LOCAL_FILES file descriptors, which the
 * caller closes. False: no message came within `ms` milliseconds, the other process has closed the
 * connection, or the message is of another size; then no descriptor stays open. */
bool bfc_local_receive(const struct bfc_local *local, void *bytes, size_t size, int *files,
                       unsigned *count, unsigned ms);

void bfc_local_end(struct bfc_local *local);

#endif
