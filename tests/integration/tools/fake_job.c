/*
 * A job that allocates nothing but publishes a segment: fake_job FOLDER [--owner] [--spin].
 *
 * Prints its pid once the segment stands, and ends when standard input does. --owner holds the
 * robust futex as a real job's helper thread does; --spin writes the pool's section without pause.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/integration/tools/segment_writer.h"

static atomic_bool over;

static union test_segment *make_segment(const char *folder) {
    static union test_segment filled;
    char name[64], path[4096];
    test_segment_fill(&filled);
    test_segment_name(&filled, name, sizeof name);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0 || write(file, &filled, sizeof filled) != (ssize_t)sizeof filled) {
        perror(path);
        exit(1);
    }
    void *base = mmap(NULL, sizeof filled, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return base == MAP_FAILED ? NULL : base;
}

struct holder {
    struct robust_list_head head;
    struct robust_list entry;
    uint32_t *word;
    atomic_bool held;
};

/* Holds the futex until the process ends. */
static void *hold(void *argument) {
    struct holder *holder = argument;
    holder->entry.next = &holder->head.list;
    holder->head.list.next = &holder->entry;
    holder->head.futex_offset = (char *)holder->word - (char *)&holder->entry;
    syscall(SYS_set_robust_list, &holder->head, sizeof holder->head);
    *holder->word = (uint32_t)gettid();
    atomic_store(&holder->held, true);
    while (pause())
        ;
    return NULL;
}

static void start_holder(union test_segment *segment) {
    static struct holder holder;
    pthread_t thread;
    holder.word = &segment->header.owner;
    if (pthread_create(&thread, NULL, hold, &holder) != 0)
        exit(1);
    while (!atomic_load(&holder.held))
        usleep(100);
}

static void *spin(void *argument) {
    for (uint64_t i = 0; !atomic_load_explicit(&over, memory_order_relaxed); i++)
        test_segment_write_pair(argument, 512 * (i % 64 + 1));
    return NULL;
}

int main(int count, char **arguments) {
    union test_segment *segment = count > 1 ? make_segment(arguments[1]) : NULL;
    pthread_t spinner;
    bool spins = false;
    if (!segment)
        return 2;
    for (int i = 2; i < count; i++) {
        if (strcmp(arguments[i], "--owner") == 0)
            start_holder(segment);
        else if (strcmp(arguments[i], "--spin") == 0)
            spins = pthread_create(&spinner, NULL, spin, segment) == 0;
    }
    printf("%d\n", (int)getpid());
    fflush(stdout);
    while (getchar() != EOF)
        ;
    atomic_store(&over, true);
    if (spins)
        pthread_join(spinner, NULL);
    return 0;
}
