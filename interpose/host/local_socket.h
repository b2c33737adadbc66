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
    int file; /* -1: none */
    dev_t device;
    ino_t inode;
};

/* Most descriptors in a message. */
enum { BFC_LOCAL_FILES = 32 };

/* Waits for callers at a path, at which there must be nothing; only this user may call. */
bool bfc_local_listen(struct bfc_local *local, const char *path);

/* Takes a call of this user's; others are hung up on. False: none came within so many ms. */
bool bfc_local_accept(const struct bfc_local *listener, struct bfc_local *local, unsigned ms);

/* Calls who waits at a path, if he is this user. ECONNREFUSED: nobody waits there any more. */
bool bfc_local_call(struct bfc_local *local, const char *path);

/* Sends a message, with copies of `count` descriptors. */
bool bfc_local_send(const struct bfc_local *local, const void *bytes, size_t size, const int *files,
                    unsigned count, unsigned ms);

/*
 * Receives a message of exactly this size, with up to BFC_LOCAL_FILES descriptors, which are the
 * caller's to close. False: none came within so many ms, the other side has ended, or it is another
 * message; no descriptor is left then.
 */
bool bfc_local_receive(const struct bfc_local *local, void *bytes, size_t size, int *files,
                       unsigned *count, unsigned ms);

void bfc_local_end(struct bfc_local *local);

#endif
