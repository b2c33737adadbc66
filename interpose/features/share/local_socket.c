/* Connections between two processes over local sockets. */
#include "interpose/features/share/local_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/open_file.h"
#include "base/shared_folder.h"

#define NS_PER_MS UINT64_C(1000000)
enum { SLICE_MS = 50 };

static bool identify_peer(struct bfc_local *local, int file) {
    struct stat status;
    local->file = file < 0 ? -1 : bfc_open_above(file);
    if (local->file < 0 || !bfc_file_status(local->file, &status))
        return false;
    local->device = status.st_dev;
    local->inode = status.st_ino;
    return true;
}

static bool is_still_it(const struct bfc_local *local) {
    struct stat status;
    return local->file >= 0 && bfc_file_status(local->file, &status) && S_ISSOCK(status.st_mode) &&
           status.st_dev == local->device && status.st_ino == local->inode;
}

void bfc_local_end(struct bfc_local *local) {
    int reason = errno;
    if (is_still_it(local))
        close(local->file);
    local->file = -1;
    errno = reason;
}

static bool is_this_users(const struct bfc_local *local) {
    struct ucred other;
    socklen_t size = sizeof other;
    return getsockopt(local->file, SOL_SOCKET, SO_PEERCRED, &other, &size) == 0 &&
           other.uid == geteuid();
}

/* Waits for an event of the socket, at most `ms` milliseconds. The number of waits is bounded too,
 * in case the program has replaced the clock by one that stands still. */
static bool await_event(const struct bfc_local *local, short event, unsigned ms) {
    uint64_t until = bfc_now_ns() + ms * NS_PER_MS;
    for (unsigned left = ms / SLICE_MS + 1; left > 0 && is_still_it(local);) {
        struct pollfd poller = {.fd = local->file, .events = event};
        int ready = poll(&poller, 1, ms < SLICE_MS ? (int)ms : SLICE_MS);
        if (ready > 0)
            return is_still_it(local);
        left -= ready == 0;
        if (bfc_now_ns() >= until)
            break;
    }
    errno = ETIMEDOUT;
    return false;
}

static bool name_address(struct sockaddr_un *address, const char *path) {
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    size_t length = strlen(path);
    if (length >= sizeof address->sun_path) {
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy(address->sun_path, path, length + 1);
    return true;
}

static bool make_socket(struct bfc_local *local) {
    return identify_peer(local, socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

static bool give_up(struct bfc_local *local) {
    bfc_local_end(local);
    return false;
}

/* Sets mode 0600 on the socket before it gets a path, so that its file never has a wider mode; sets
 * it again on the file afterwards, because the umask may have narrowed the mode. */
bool bfc_local_listen(struct bfc_local *local, const char *path) {
    struct sockaddr_un address;
    if (!make_socket(local) || !name_address(&address, path) || fchmod(local->file, 0600) != 0 ||
        bind(local->file, (const struct sockaddr *)&address, sizeof address) != 0)
        return give_up(local);
    if (chmod(path, 0600) == 0 && listen(local->file, 4) == 0)
        return true;
    int reason = errno;
    unlink(path);
    errno = reason;
    return give_up(local);
}

bool bfc_local_accept(const struct bfc_local *listener, struct bfc_local *local, unsigned ms) {
    local->file = -1;
    if (!await_event(listener, POLLIN, ms))
        return false;
    int file = accept4(listener->file, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (!identify_peer(local, file))
        return give_up(local);
    return is_this_users(local) || give_up(local);
}

bool bfc_local_call(struct bfc_local *local, const char *path) {
    struct sockaddr_un address;
    if (!make_socket(local) || !name_address(&address, path) ||
        connect(local->file, (const struct sockaddr *)&address, sizeof address) != 0)
        return give_up(local);
    return is_this_users(local) || give_up(local);
}

union rights {
    struct cmsghdr header;
    char room[CMSG_SPACE(BFC_LOCAL_FILES * sizeof(int))];
};

static void put_files(struct msghdr *message, union rights *rights, const int *files,
                      unsigned count) {
    if (count == 0)
        return;
    message->msg_control = rights;
    message->msg_controllen = CMSG_SPACE(count * sizeof *files);
    struct cmsghdr *header = CMSG_FIRSTHDR(message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(count * sizeof *files);
    memcpy(CMSG_DATA(header), files, count * sizeof *files);
}

bool bfc_local_send(const struct bfc_local *local, const void *bytes, size_t size, const int *files,
                    unsigned count, unsigned ms) {
    union rights rights = {0};
    struct iovec part = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (count > BFC_LOCAL_FILES || !await_event(local, POLLOUT, ms))
        return false;
    put_files(&message, &rights, files, count);
    return sendmsg(local->file, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)size;
}

static unsigned take_files(struct msghdr *message, int *files) {
    unsigned count = 0;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header;
         header = CMSG_NXTHDR(message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
            continue;
        count = (unsigned)((header->cmsg_len - CMSG_LEN(0)) / sizeof *files);
        memcpy(files, CMSG_DATA(header), count * sizeof *files);
    }
    return count;
}

/* The flag MSG_CTRUNC of a received message means that this process may not open as many
 * descriptors as were sent. */
bool bfc_local_receive(const struct bfc_local *local, void *bytes, size_t size, int *files,
                       unsigned *count, unsigned ms) {
    union rights rights = {0};
    struct iovec part = {.iov_base = bytes, .iov_len = size};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &rights, .msg_controllen = sizeof rights};
    *count = 0;
    if (!await_event(local, POLLIN, ms))
        return false;
    ssize_t received = recvmsg(local->file, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (received < 0)
        return false;
    *count = take_files(&message, files);
    if (received == (ssize_t)size && !(message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
        return true;
    while (*count > 0)
        close(files[--*count]);
    errno = message.msg_flags & MSG_CTRUNC ? EMFILE : EPROTO;
    return false;
}
