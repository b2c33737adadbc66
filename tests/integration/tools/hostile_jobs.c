/*
 * A user who means harm to whoever reads segments: hostile_jobs FOLDER VICTIM PID.
 *
 * Leaves files named as user VICTIM's segments, and many of its own of every damaged kind; one says
 * that it is process PID's. Prints a line when they are there, and then changes them without pause
 * until standard input ends.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/integration/tools/segment_writer.h"

/* FIRST: no process has such a number, so that none of the test's own is locked out by chance. */
enum { IMPOSTORS = 2000, FIRST = 1 << 22, OWN = 400 };

static union test_segment segment;
static int folder;

/* Of a pid namespace that nobody knows, so that nobody can tell whether it lives; 0 is the honest
 * one. */
static void name_of(int pid, uint64_t strange, char *name, size_t size) {
    segment.header.pid = pid;
    segment.header.pid_namespace += strange;
    test_segment_name(&segment, name, size);
    segment.header.pid_namespace -= strange;
}

static void write_segment(const char *name, uint64_t strange, size_t size) {
    int file = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK, 0600);
    segment.header.pid_namespace += strange;
    if (file >= 0) {
        if (write(file, &segment, size) != (ssize_t)size)
            perror(name);
        close(file);
    }
    segment.header.pid_namespace -= strange;
}

static void make_sparse(const char *name) {
    write_segment(name, 1, 4096);
    int file = openat(folder, name, O_WRONLY);
    if (file < 0 || ftruncate(file, (off_t)1 << 40) != 0)
        perror(name);
    close(file);
}

/* Always in mid-write, and each time another job to who remembers jobs by when they were made. */
static void write_torn(const char *name) {
    segment.header.owner = 1;
    segment.header.created_ns++;
    segment.pools[0].stats.sequence |= 1;
    write_segment(name, 1, sizeof segment);
    segment.pools[0].stats.sequence &= ~UINT64_C(1);
    segment.header.owner = 0;
}

static void make_own(int number) {
    char name[64];
    name_of(number + 1, 1, name, sizeof name);
    switch (number % 7) {
    case 0:
        write_segment(name, 1, 0);
        break;
    case 1:
        write_segment(name, 1, (size_t)rand() % sizeof segment);
        break;
    case 2:
        mkfifoat(folder, name, 0600);
        break;
    case 3:
        mkdirat(folder, name, 0700);
        break;
    case 4:
        (void)!symlinkat("/dev/zero", folder, name); /* there is one already, the second time */
        break;
    case 5:
        make_sparse(name);
        break;
    default:
        write_torn(name);
    }
}

static void make_impostors(uint32_t victim) {
    char name[64];
    uint32_t own = segment.header.uid;
    segment.header.uid = victim;
    for (int i = 0; i < IMPOSTORS; i++) {
        name_of(FIRST + i, 0, name, sizeof name);
        write_segment(name, 0, 0);
    }
    segment.header.uid = own;
}

static void claim(int pid) {
    char name[64];
    segment.header.start_time = test_segment_start_of(pid);
    name_of(pid, 0, name, sizeof name);
    write_segment(name, 0, sizeof segment);
}

static bool is_over(void) {
    struct pollfd input = {.fd = 0, .events = POLLIN};
    return poll(&input, 1, 0) > 0;
}

int main(int count, char **arguments) {
    if (count != 4 || (folder = open(arguments[1], O_RDONLY | O_DIRECTORY)) < 0)
        return 2;
    test_segment_fill(&segment);
    claim(atoi(arguments[3])); /* first, to be among those that are read */
    make_impostors((uint32_t)strtoul(arguments[2], NULL, 10));
    for (int i = 0; i < OWN; i++)
        make_own(i);
    puts("ready");
    fflush(stdout);
    while (!is_over())
        make_own(rand() % OWN);
    return 0;
}
