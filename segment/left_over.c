#include "segment/left_over.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/open_file.h"
#include "base/shared_folder.h"
#include "segment/name.h"
#include "segment/process_life.h"
#include "segment/segment_file.h"

/*
 * Whether the segment's process is gone. The helper thread of a process holds a robust futex in the
 * segment, and the kernel marks it when the thread ends (FUTEX_OWNER_DIED). The mark can be read
 * from any pid namespace, even if the process is a zombie or its pid belongs to another process by
 * now.
 */
static bool has_marked_owner(int directory, const struct bfc_segment_name *name,
                             uint64_t *start_time) {
    const struct bfc_segment_look look = {.name = name};
    uint32_t owner = 0;
    int file;
    if (bfc_segment_file_open(&look, directory, false, &file) != BFC_READ_OK)
        return false;
    bool marked = bfc_segment_read_at(file, &owner, sizeof owner,
                                      offsetof(struct bfc_segment_header, owner)) &&
                  (owner & FUTEX_OWNER_DIED) &&
                  bfc_segment_read_at(file, start_time, sizeof *start_time,
                                      offsetof(struct bfc_segment_header, start_time));
    close(file);
    return marked;
}

static bool remove_segment(void *context, int directory, const struct bfc_segment_name *name) {
    uint64_t start_time;
    (void)context;
    if (name->uid != getuid())
        return true;
    bool here = name->pid_namespace == bfc_pid_namespace();
    if ((here && bfc_process_is_gone(name->pid, 0)) ||
        has_marked_owner(directory, name, &start_time))
        bfc_segment_remove(directory, name);
    return true;
}

struct table_name {
    unsigned user;
    unsigned long long pid_namespace, number;
    int pid;
    bool is_socket;
};

static bool parse_table(const char *text, struct table_name *name) {
    int end = 0;
    if (sscanf(text, "bfcipc.%u.%llu.%d.%16llx%n", &name->user, &name->pid_namespace, &name->pid,
               &name->number, &end) != 4)
        return false;
    name->is_socket = text[end] == '.';
    return (text[end] == '\0' || name->is_socket) && name->pid > 0;
}

static struct bfc_table_maker read_maker(int directory, const char *text) {
    struct bfc_table_maker maker = {0};
    int file = bfc_open_at(directory, text, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (file < 0)
        return maker;
    if (!bfc_file_is_private(file) ||
        !bfc_segment_read_at(file, &maker, sizeof maker, BFC_TABLE_MAKER_OFFSET))
        maker = (struct bfc_table_maker){0};
    close(file);
    return maker;
}

struct bfc_table_maker bfc_table_maker_self(void) {
    return (struct bfc_table_maker){bfc_process_start_time(getpid()), bfc_time_namespace()};
}

/* Whether a process of another pid namespace is gone. In this namespace its pid says nothing about
 * it, so only the mark in its segment (has_marked_owner) can tell. */
static bool is_gone_elsewhere(int directory, const struct table_name *name,
                              const struct bfc_table_maker *maker) {
    const struct bfc_segment_name segment =
        bfc_segment_name_of(name->user, name->pid_namespace, name->pid);
    uint64_t start_time;
    return maker->start_time && has_marked_owner(directory, &segment, &start_time) &&
           start_time == maker->start_time;
}

/* Whether no process has the socket any more. The kernel tells by its answer to a connection of
 * another kind than the socket's, which is refused in any case, and of which the socket's process
 * sees nothing. A socket younger than BFC_SOCKET_SETTLED_S may have a file, but no address yet. */
static bool is_deserted(int directory, const char *text) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat status;
    int length =
        snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", directory, text);
    if (length >= (int)sizeof address.sun_path || !bfc_file_status_at(directory, text, &status) ||
        !S_ISSOCK(status.st_mode) || time(NULL) - status.st_ctime <= BFC_SOCKET_SETTLED_S)
        return false;
    int file = bfc_open_above(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (file < 0)
        return false;
    bool refused = connect(file, (const struct sockaddr *)&address, sizeof address) != 0 &&
                   errno == ECONNREFUSED;
    close(file);
    return refused;
}

/* Whether the process whose pid the file's name contains is gone, so that the file is left over.
 * The name of a socket contains the pid of the process that is to send an answer, not of the one
 * that waits for it, and that has the socket. */
static bool is_left_over(int directory, const char *text, const struct table_name *name) {
    struct bfc_table_maker maker = {0};
    if (name->is_socket && is_deserted(directory, text))
        return true;
    if (!name->is_socket)
        maker = read_maker(directory, text);
    if (name->pid_namespace != bfc_pid_namespace())
        return is_gone_elsewhere(directory, name, &maker);
    bool same_clock = maker.time_namespace == bfc_time_namespace();
    return bfc_process_is_gone(name->pid, same_clock ? maker.start_time : 0);
}

static bool is_own(const struct table_name *name) {
    return name->pid == getpid() && name->pid_namespace == bfc_pid_namespace();
}

static void remove_own(int directory, const char *text) {
    struct stat status;
    if (bfc_file_status_at(directory, text, &status) && status.st_uid == geteuid() &&
        (S_ISREG(status.st_mode) || S_ISSOCK(status.st_mode)))
        unlinkat(directory, text, 0);
}

static void sweep_tables(int directory, bool own_too) {
    DIR *stream = bfc_open_folder_at(directory, ".");
    struct table_name name;
    const struct dirent *entry;
    if (!stream)
        return;
    for (size_t i = 0; i < BFC_FOLDER_ENTRIES_MOST && (entry = readdir(stream)); i++)
        if (parse_table(entry->d_name, &name) && name.user == getuid() &&
            ((own_too && is_own(&name)) || is_left_over(directory, entry->d_name, &name)))
            remove_own(directory, entry->d_name);
    closedir(stream);
}

void bfc_left_over_tables_sweep(int directory) {
    sweep_tables(directory, false);
}

void bfc_left_over_own_sweep(void) {
    int directory = bfc_segment_directory_open(BFC_SHARED_FOLDER);
    if (directory < 0)
        return;
    sweep_tables(directory, true);
    close(directory);
}

void bfc_left_over_sweep(void) {
    int directory = bfc_segment_directory_open(BFC_SHARED_FOLDER);
    if (directory < 0)
        return;
    bfc_left_over_tables_sweep(directory);
    bfc_segment_names_visit(directory, BFC_FOLDER_ENTRIES_MOST, remove_segment, NULL);
    close(directory);
}
