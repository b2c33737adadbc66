/* Looking at other processes' segments. */
#include "interpose/neighbours.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "interpose/segment_layout.h"

#define FOLDER "/dev/shm"
#define MOST_ENTRIES 1024

/* Whether `name` is a segment of this user and pid namespace. */
static bool is_ours(const char *name, uint64_t pid_namespace, int *pid) {
    unsigned uid;
    unsigned long space;
    char again[96];
    if (sscanf(name, BFC_SEGMENT_NAME_PREFIX "%u.%lu.%d", &uid, &space, pid) != 3 ||
        uid != getuid() || space != pid_namespace || *pid <= 0)
        return false;
    snprintf(again, sizeof again, BFC_SEGMENT_NAME_FORMAT, uid, space, *pid);
    return strcmp(again + 1, name) == 0;
}

static void visit(uint64_t pid_namespace, bool (*look)(void *, int folder, const char *, int pid),
                  void *context) {
    int pid;
    DIR *folder = opendir(FOLDER);
    if (!folder)
        return;
    struct dirent *entry;
    for (int i = 0; i < MOST_ENTRIES && (entry = readdir(folder)); i++)
        if (is_ours(entry->d_name, pid_namespace, &pid) &&
            !look(context, dirfd(folder), entry->d_name, pid))
            break;
    closedir(folder);
}

/* ---- the dead ---- */

static bool is_dead(int pid) {
    return kill(pid, 0) != 0 && errno == ESRCH;
}

static bool remove_if_dead(void *context, int folder, const char *name, int pid) {
    (void)context;
    if (is_dead(pid))
        unlinkat(folder, name, 0);
    return true;
}

void bfc_neighbours_sweep(uint64_t pid_namespace) {
    visit(pid_namespace, remove_if_dead, NULL);
}

/* ---- who is on the device ---- */

struct search {
    const uint8_t *uuid;
    struct bfc_neighbour *found;
    size_t count, most;
};

static bool read_at(int file, void *to, size_t size, uint64_t offset) {
    return pread(file, to, size, (off_t)offset) == (ssize_t)size;
}

/* The beginning of a segment, up to where a neighbour is told from others. */
static bool read_beginning(int file, struct bfc_neighbour *neighbour) {
    struct {
        uint64_t magic;
        uint32_t version;
    } start;
    if (!read_at(file, &start, 12, 0) || start.magic != BFC_SEGMENT_MAGIC ||
        start.version != BFC_SEGMENT_VERSION ||
        !read_at(file, neighbour->command, sizeof neighbour->command,
                 offsetof(struct bfc_segment_header, command)))
        return false;
    neighbour->command[sizeof neighbour->command - 1] = '\0';
    for (char *c = neighbour->command; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
    return true;
}

/* Adds up its pools on the device. The part of a section before the histograms suffices. */
static bool read_pools(int file, const uint8_t *uuid, struct bfc_neighbour *neighbour) {
    struct bfc_segment_pool pool;
    const size_t part = offsetof(struct bfc_segment_pool, lanes);
    bool there = false;
    for (unsigned i = 0; i < BFC_SEGMENT_POOLS; i++) {
        if (!read_at(file, &pool, part, BFC_SEGMENT_POOLS_OFFSET + i * (uint64_t)sizeof pool))
            return there;
        if (pool.state != BFC_POOL_ACTIVE || memcmp(pool.device_uuid, uuid, 16) != 0)
            continue;
        neighbour->in_use += pool.stats.in_use;
        neighbour->cached += pool.stats.clean + pool.stats.dirty + pool.stats.limbo;
        there = true;
    }
    return there;
}

static bool look_at(void *context, int folder, const char *name, int pid) {
    struct search *search = context;
    struct bfc_neighbour *neighbour = &search->found[search->count];
    if (pid == getpid() || is_dead(pid))
        return true;
    int file = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0)
        return true;
    *neighbour = (struct bfc_neighbour){.pid = pid};
    if (read_beginning(file, neighbour) && read_pools(file, search->uuid, neighbour))
        search->count++;
    close(file);
    return search->count < search->most;
}

size_t bfc_neighbours_on(const uint8_t uuid[16], uint64_t pid_namespace,
                         struct bfc_neighbour *found, size_t most) {
    struct search search = {.uuid = uuid, .found = found, .most = most};
    visit(pid_namespace, look_at, &search);
    return search.count;
}
