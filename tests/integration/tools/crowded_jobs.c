/*
 * Many jobs that are not there: crowded_jobs FOLDER UID USERS JOBS POOLS CONTEXTS.
 *
 * Leaves segments of JOBS jobs, the first of user UID, the next of UID + 1 and so on, of USERS
 * users in all, with POOLS pools each (32 at most), of CONTEXTS contexts.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/integration/tools/segment_writer.h"

/* No process has such a number. */
enum { FIRST = 1 << 23 };

static union test_segment segment;
static size_t used; /* the rest is zeros, which take no room on the disk */

static void fill(long pools, long contexts) {
    test_segment_fill(&segment);
    used = (size_t)((char *)&segment.pools[pools] - (char *)&segment);
    segment.header.owner = 1; /* runs, for all that is known of its pid namespace */
    segment.header.pid_namespace++;
    segment.header.rank = 0;
    memset(segment.header.job, '"', sizeof segment.header.job - 1); /* two characters of a label */
    for (long i = 1; i < pools; i++) {
        segment.pools[i] = segment.pools[0];
        segment.pools[i].context_id += (uint64_t)(i % contexts);
    }
}

static int leave(int folder, int number, uid_t uid) {
    char name[64];
    segment.header.pid = FIRST + number;
    segment.header.uid = uid;
    test_segment_name(&segment, name, sizeof name);
    int file = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    int bad = file < 0 || write(file, &segment, used) != (ssize_t)used ||
              ftruncate(file, sizeof segment) != 0 ||
              (uid != getuid() && fchown(file, uid, (gid_t)-1) != 0);
    if (bad)
        perror(name);
    close(file);
    return bad;
}

int main(int count, char **arguments) {
    int folder = count == 7 ? open(arguments[1], O_RDONLY | O_DIRECTORY) : -1, bad = folder < 0;
    if (bad || atol(arguments[5]) > (long)BFC_SEGMENT_POOLS)
        return 2;
    int users = atoi(arguments[3]), jobs = atoi(arguments[4]);
    fill(atol(arguments[5]), atol(arguments[6]));
    for (int i = 0; i < jobs; i++)
        bad |= leave(folder, i, (uid_t)(atoi(arguments[2]) + i % users));
    return bad;
}
