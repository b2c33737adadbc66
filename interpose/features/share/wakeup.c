/* A futex in a shared file, by which one process wakes another. */
#include "interpose/features/share/token_table.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "interpose/host/quiet.h"

static void *map_head(int file) {
    void *head = mmap(NULL, BFC_TABLE_HEAD, PROT_READ, MAP_SHARED, file, 0);
    return head == MAP_FAILED ? NULL : head;
}

bool bfc_wakeup_open(struct bfc_wakeup *wakeup) {
    if (!bfc_token_table_name(&wakeup->table))
        return false;
    int file = bfc_token_table_open(&wakeup->table, O_RDONLY);
    if (file < 0)
        return false;
    wakeup->head = map_head(file);
    close(file);
    return wakeup->head;
}

bool bfc_wakeup_read(const struct bfc_wakeup *wakeup, uint32_t *word) {
    int file = bfc_token_table_open(&wakeup->table, O_RDONLY);
    if (file < 0)
        return false;
    ssize_t size = pread(file, word, sizeof *word, 0);
    close(file);
    return size == (ssize_t)sizeof *word;
}

bool bfc_wakeup_await(const struct bfc_wakeup *wakeup, uint32_t word) {
    return syscall(SYS_futex, wakeup->head, FUTEX_WAIT, word, NULL, NULL, 0) == 0 ||
           errno == EAGAIN || errno == EINTR;
}

/* Increments the futex's word in the file. Two processes that do so at once may write the same
 * value, but it differs from the value that both have read, so the sleeping process wakes. */
static bool change_word(int file) {
    uint32_t word;
    struct bfc_quiet quiet;
    /* suppresses the signal that is raised if the file would become too large */
    bfc_quiet_begin(&quiet);
    bool changed = pread(file, &word, sizeof word, 0) == (ssize_t)sizeof word;
    word++;
    changed = changed && pwrite(file, &word, sizeof word, 0) == (ssize_t)sizeof word;
    bfc_quiet_end(&quiet);
    return changed;
}

static bool wake_waiters(int file) {
    void *head = map_head(file);
    if (!head)
        return false;
    bool woken = syscall(SYS_futex, head, FUTEX_WAKE, INT_MAX, NULL, NULL, 0) >= 0;
    munmap(head, BFC_TABLE_HEAD);
    return woken;
}

bool bfc_wakeup_signal(const struct bfc_token *token) {
    int file = bfc_token_table_open(token, O_RDWR);
    if (file < 0)
        return false;
    bool woken = change_word(file) && wake_waiters(file);
    close(file);
    return woken;
}
