/* Writes and reads tables of exported blocks. */
#include "interpose/features/share/token_table.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/open_file.h"
#include "base/shared_folder.h"
#include "interpose/host/quiet.h"
#include "segment/left_over.h"

#define PATH_FORMAT BFC_SHARED_FOLDER "/" BFC_TABLE_NAME_FORMAT

/* The head of a table's file. It begins with the futex's word, and is written as soon as the file
 * is made, since waiting on the futex needs a file that is long enough to hold it. */
struct head {
    uint32_t wakeup, padding;
    struct bfc_table_maker maker;
};
_Static_assert(offsetof(struct head, maker) == BFC_TABLE_MAKER_OFFSET, "where it is looked for");

enum { PATH_SIZE = 128, READ_ATTEMPTS = 100 };
#define ATTEMPT_NAP_NS 20000L

static struct {
    pthread_mutex_t lock;
    pid_t pid; /* process that made the table; 0: there is no table */
    uint64_t number, pid_namespace;
    uint32_t rows; /* how many rows of the file were ever used, from the first on */
    uint32_t *unused;
    uint32_t unused_count, unused_room;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void print_path(char path[PATH_SIZE], uint64_t pid_namespace, pid_t pid, uint64_t number) {
    snprintf(path, PATH_SIZE, PATH_FORMAT, getuid(), (unsigned long long)pid_namespace, pid,
             (unsigned long long)number);
}

bool bfc_fill_randomly(void *bytes, size_t size) {
    return syscall(SYS_getrandom, bytes, size, 0) == (long)size;
}

static int open_own(int flags) {
    char path[PATH_SIZE];
    print_path(path, table.pid_namespace, table.pid, table.number);
    return bfc_open(path, flags | O_NOFOLLOW, 0600);
}

/* Writes to the file. A write beyond the process's limit of file sizes fails without raising
 * SIGXFSZ. */
static bool write_quietly(int file, const void *bytes, size_t size, off_t offset) {
    struct bfc_quiet quiet;
    bfc_quiet_begin(&quiet);
    ssize_t written = pwrite(file, bytes, size, offset);
    bfc_quiet_end(&quiet);
    return written == (ssize_t)size;
}

/* Makes this process's table, unless it is made already. A forked child makes a table of its own,
 * and leaves its parent's alone. */
static bool make_table(void) {
    if (table.pid == getpid())
        return true;
    table.pid_namespace = bfc_pid_namespace();
    bfc_left_over_own_sweep();
    if (!bfc_fill_randomly(&table.number, sizeof table.number))
        return false;
    table.pid = getpid();
    table.rows = table.unused_count = 0;
    const struct head head = {.wakeup = 1, .maker = bfc_table_maker_self()};
    int file = open_own(O_RDWR | O_CREAT | O_EXCL);
    bool made = file >= 0 && fchmod(file, 0600) == 0 && /* open applied the umask */
                write_quietly(file, &head, sizeof head, 0);
    if (file >= 0)
        close(file);
    if (!made)
        table.pid = 0;
    return made;
}

__attribute__((destructor)) static void remove_table(void) {
    char path[PATH_SIZE];
    if (table.pid == 0 || table.pid != getpid())
        return;
    print_path(path, table.pid_namespace, table.pid, table.number);
    unlink(path);
}

static bool take_slot(uint32_t *slot) {
    if (table.unused_count > 0) {
        *slot = table.unused[--table.unused_count];
        return true;
    }
    *slot = table.rows;
    return table.rows < BFC_MOST_ROWS && ++table.rows;
}

/* Keeps the index of a cleared row for a later export. If the host has no memory for that, the row
 * is not used again. */
static void give_slot(uint32_t slot) {
    if (table.unused_count == table.unused_room) {
        uint32_t room = table.unused_room ? 2 * table.unused_room : 64;
        uint32_t *grown = realloc(table.unused, room * sizeof *grown);
        if (!grown)
            return;
        table.unused = grown;
        table.unused_room = room;
    }
    table.unused[table.unused_count++] = slot;
}

static off_t place_of(uint32_t slot) {
    return BFC_TABLE_HEAD + (off_t)slot * (off_t)sizeof(struct bfc_row);
}

static bool write_row(uint32_t slot, const struct bfc_row *row) {
    int file = open_own(O_RDWR);
    if (file < 0)
        return false;
    bool written =
        bfc_file_is_private(file) && write_quietly(file, row, sizeof *row, place_of(slot));
    int error = errno;
    close(file);
    errno = error;
    return written;
}

static bool publish_row(struct bfc_token *token, struct bfc_row *row) {
    if (!make_table() || !bfc_fill_randomly(token->key, sizeof token->key))
        return false;
    if (!take_slot(&token->slot)) {
        errno = ENOSPC;
        return false;
    }
    token->pid_namespace = table.pid_namespace;
    token->table = table.number;
    token->pid = table.pid;
    bfc_token_seal(token);
    bfc_row_seal(token, row);
    bool written = write_row(token->slot, row);
    if (!written)
        give_slot(token->slot);
    return written;
}

bool bfc_token_table_publish(struct bfc_token *token, struct bfc_row *row) {
    int cancel = bfc_cancel_disable();
    pthread_mutex_lock(&table.lock);
    bool published = publish_row(token, row);
    pthread_mutex_unlock(&table.lock);
    bfc_cancel_restore(cancel);
    return published;
}

void bfc_token_table_retire(const struct bfc_token *token) {
    const struct bfc_row nothing = {.size = 0};
    int cancel = bfc_cancel_disable();
    pthread_mutex_lock(&table.lock);
    if (token->pid == table.pid && token->table == table.number && write_row(token->slot, &nothing))
        give_slot(token->slot);
    pthread_mutex_unlock(&table.lock);
    bfc_cancel_restore(cancel);
}

bool bfc_token_table_name(struct bfc_token *token) {
    int cancel = bfc_cancel_disable();
    pthread_mutex_lock(&table.lock);
    bool exists = table.pid != 0 && table.pid == getpid();
    token->pid_namespace = table.pid_namespace;
    token->table = table.number;
    token->pid = table.pid;
    pthread_mutex_unlock(&table.lock);
    bfc_cancel_restore(cancel);
    return exists;
}

bool bfc_token_table_is_own(const struct bfc_token *token) {
    struct bfc_token own;
    return bfc_token_table_name(&own) && token->table == own.table && token->pid == own.pid &&
           token->pid_namespace == own.pid_namespace;
}

int bfc_token_table_open(const struct bfc_token *token, int flags) {
    char path[PATH_SIZE];
    print_path(path, token->pid_namespace, token->pid, token->table);
    int file = bfc_open(path, flags | O_NOFOLLOW | O_NONBLOCK, 0);
    if (file < 0 || bfc_file_is_private(file))
        return file;
    close(file);
    errno = EPERM;
    return -1;
}

/* Reads the row that a token names. If the row does not match the token, it is read again, until it
 * matches or two reads are equal: while the reads differ, the row's process is writing the row. */
static bool read_row(int file, const struct bfc_token *token, struct bfc_row *row) {
    struct bfc_row read[2] = {0};
    for (int attempt = 0; attempt < READ_ATTEMPTS; attempt++) {
        struct bfc_row *now = &read[attempt % 2];
        ssize_t size = pread(file, now, sizeof *now, place_of(token->slot));
        if (size != (ssize_t)sizeof *now)
            return false;
        if (bfc_row_matches(token, now)) {
            *row = *now;
            return true;
        }
        if (attempt > 0 && memcmp(&read[0], &read[1], sizeof *now) == 0)
            return false;
        bfc_nap(ATTEMPT_NAP_NS);
    }
    return false;
}

static enum bfc_table_answer read_table(const struct bfc_token *token, struct bfc_row *row) {
    if (!bfc_token_intact(token))
        return BFC_TABLE_DAMAGED;
    int file = bfc_token_table_open(token, O_RDONLY);
    if (file < 0)
        return errno == ENOENT ? BFC_TABLE_MISSING : BFC_TABLE_UNSAFE;
    enum bfc_table_answer answer = read_row(file, token, row) ? BFC_TABLE_FOUND : BFC_TABLE_STALE;
    close(file);
    return answer;
}

enum bfc_table_answer bfc_token_table_read(const struct bfc_token *token, struct bfc_row *row) {
    int cancel = bfc_cancel_disable();
    enum bfc_table_answer answer = read_table(token, row);
    bfc_cancel_restore(cancel);
    return answer;
}
