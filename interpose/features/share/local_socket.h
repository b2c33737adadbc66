/*
 * Short conversations between two processes of one user, over a socket in the file system, by which
 * descriptors can be passed.
 *
 * A message is whole or not there at all (SOCK_SEQPACKET). Every wait is bounded, none raises a
 * signal, and every descriptor is close-on-exec. Both sides may be inside a program that closes all
 * descriptors which it does not know, and then opens its own by the same numbers: so before each
 * use a socket's identity is checked, and a descriptor that has become another's is left alone.
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

/* Most descriptors in a message. */
enum { BFC_LOCAL_FILES = 32 };

/* Makes a listening socket at a path, which must not exist; only this user may connect. */
bool bfc_local_listen(struct bfc_local *local, const char *path);

/* Accepts a connection of this user's, and closes one of another user's. False: there is none,
 * after a wait of at most `ms` milliseconds. */
bool bfc_local_accept(const struct bfc_local *listener, struct bfc_local *local, unsigned ms);

/* Connects to the socket at a path, if a process of this user listens there. ECONNREFUSED: no
 * process listens there any more. */
bool bfc_local_call(struct bfc_local *local, const char *path);

/*
 * Sends a message, with copies of `count` descriptors, after a wait of at most `ms` milliseconds.
 */
bool bfc_local_send(const struct bfc_local *local, const void *bytes, size_t size, const int *files,
                    unsigned count, unsigned ms);

/*
 * Receives a message of exactly this size, with up to BFC_LOCAL_FILES descriptors, which are the
 * caller's to close. False: no message came within `ms` milliseconds, the other side has closed the
 * connection, or the message is of another size; then no descriptor stays open.
 */
bool bfc_local_receive(const struct bfc_local *local, void *bytes, size_t size, int *files,
                       unsigned *count, unsigned ms);

void bfc_local_end(struct bfc_local *local);

#endif
