/* The reader of segments: names, refusals, liveness, sweeping, a segment cut off under it. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/integration/tools/segment_writer.h"
#include "tools/job/reader.h"

static char folder[] = "/tmp/bfc-reader-XXXXXX";
static int directory;
static union test_segment segment;
static struct bfc_job job;
static char reason[256];

static void make_folder(void) {
    cr_assert(mkdtemp(folder));
    directory = bfc_segment_directory_open(folder);
    cr_assert(directory >= 0);
    test_segment_fill(&segment);
}

static void remove_folder(void) {
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    cr_assert(system(command) == 0);
}

TestSuite(reader, .init = make_folder, .fini = remove_folder);

static struct bfc_segment_name publish(size_t size) {
    struct bfc_segment_name name;
    char text[64];
    test_segment_name(&segment, text, sizeof text);
    cr_assert(bfc_segment_name_parse(text, &name));
    int file = openat(directory, text, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    cr_assert(write(file, &segment, size) == (ssize_t)size);
    close(file);
    return name;
}

static enum bfc_read_result read_published(size_t size) {
    struct bfc_segment_name name = publish(size);
    reason[0] = '\0';
    return bfc_segment_read(directory, &name, &job, reason, sizeof reason);
}

static void expect_refusal(const char *words) {
    cr_expect(read_published(sizeof segment) == BFC_READ_REFUSED);
    cr_expect(strstr(reason, words), "\"%s\" does not say \"%s\"", reason, words);
    cr_expect(strchr(reason, '\n') == NULL);
}

Test(reader, copies_an_honest_segment) {
    cr_assert(read_published(sizeof segment) == BFC_READ_OK, "%s", reason);
    for (unsigned i = 0; i < BFC_SEGMENT_POOLS; i++) /* a copy has the sum */
        bfc_sum_lanes(&segment.pools[i]);
    cr_expect(job.state == BFC_JOB_RUNNING);
    cr_expect(job.torn == 0);
    cr_expect(memcmp(&job.header, &segment.header, sizeof job.header) == 0);
    cr_expect(memcmp(job.pools, segment.pools, sizeof job.pools) == 0);
}

Test(reader, copies_the_map_and_the_events) {
    cr_assert(read_published(sizeof segment) == BFC_READ_OK, "%s", reason);
    cr_expect(memcmp(&job.map, &segment.map, sizeof job.map) == 0);
    cr_assert(job.map.rows == 2);
    cr_expect(bfc_map_row_cells(&job.map.row[0]) == 128);
    cr_expect(job.landmark_count == 6);
    cr_assert(job.event_count == BFC_EVENTS - 1);
    for (size_t i = 1; i < job.event_count; i++)
        cr_assert(job.events[i].stamp > job.events[i - 1].stamp);
    cr_expect(job.events[job.event_count - 1].stamp == BFC_EVENTS + 10);
}

Test(reader, drops_unsound_rows_and_events) {
    segment.map.row[0].cell_bytes = 0;
    segment.events[9].stamp = 10; /* of the round before */
    cr_assert(read_published(sizeof segment) == BFC_READ_OK, "%s", reason);
    cr_expect(job.map.rows == 1);
    cr_expect(job.event_count == BFC_EVENTS - 2);
    segment.map.row[1].pool = BFC_SEGMENT_POOLS;
    cr_assert(read_published(sizeof segment) == BFC_READ_OK, "%s", reason);
    cr_expect(job.map.rows == 0);
    segment.map.rows = UINT64_MAX;
    segment.header.next_event = UINT64_MAX;
    segment.header.next_landmark = 1;
    cr_assert(read_published(sizeof segment) == BFC_READ_OK, "%s", reason);
    cr_expect(job.map.rows == 0 && job.event_count == 0 && job.landmark_count == 1);
}

Test(reader, leaves_what_it_need_not_read_untouched) {
    static struct bfc_job zeros;
    struct bfc_segment_name name = publish(sizeof segment);
    memset(&job, 0, sizeof job);
    cr_assert(bfc_segment_read_figures(directory, &name, &job, reason, sizeof reason) ==
                  BFC_READ_OK,
              "%s", reason);
    cr_expect(memcmp(&job.header, &segment.header, sizeof job.header) == 0);
    cr_expect(memcmp(&job.pools[0].stats, &segment.pools[0].stats, sizeof job.pools[0].stats) == 0);
    cr_expect(memcmp(&job.map, &zeros.map, sizeof job.map) == 0);
    cr_expect(job.landmark_count == 0 && job.event_count == 0);
    segment.pools[1].state = 77; /* found when the first pool has been copied */
    name = publish(sizeof segment);
    memset(&job, 0, sizeof job);
    cr_expect(bfc_segment_read_figures(directory, &name, &job, reason, sizeof reason) ==
              BFC_READ_REFUSED);
    cr_expect(memcmp(&job, &zeros, sizeof job) == 0);
}

Test(reader, bins_cover_all_numbers) {
    cr_expect(bfc_size_bin(0) == 0 && bfc_size_bin(1) == 0);
    cr_expect(bfc_size_bin(2) == 1 && bfc_size_bin(3) == 2 && bfc_size_bin(4) == 2);
    cr_expect(bfc_size_bin(UINT64_MAX) == BFC_SIZE_BINS - 1);
    for (unsigned bin = 0; bin < BFC_LATENCY_BINS; bin++) {
        cr_expect(bfc_latency_bin(bfc_latency_bin_start(bin)) == bin, "%u", bin);
        if (bin > 0)
            cr_expect(bfc_latency_bin(bfc_latency_bin_start(bin) - 1) == bin - 1, "%u", bin);
    }
    cr_expect(bfc_latency_bin(UINT64_MAX) == BFC_LATENCY_BINS - 1);
}

Test(reader, derives_histograms) {
    uint64_t sizes[BFC_SIZE_BINS];
    const uint64_t *latency = segment.pools[0].allocate_latency;
    bfc_pool_sizes(&segment.pools[0], sizes);
    cr_expect(sizes[16] == 1999 && sizes[26] == 1 && sizes[0] == 0);
    cr_expect(bfc_latency_quantile(latency, 0.5) == 48);
    cr_expect(bfc_latency_quantile(latency, 0.99) == 96);
    cr_expect(bfc_latency_quantile(latency, 1) == 96);
    cr_expect(bfc_latency_quantile(segment.pools[1].allocate_latency, 0.5) == 0);
}

Test(reader, derives_figures) {
    struct bfc_segment_pool *pool = &segment.pools[0];
    struct bfc_pool_stats *stats = &pool->stats;
    cr_expect(bfc_pool_cached(stats) == UINT64_C(40) << 20);
    cr_expect(bfc_pool_fragmentation(pool) == 0.5); /* of 30 MiB that are ready, 15 */
    cr_expect(bfc_pool_hit_rate(stats) == 1999.0 / 2000);
    pool->fit.too_small = UINT64_MAX; /* out of date: still no nonsense */
    cr_expect(bfc_pool_fragmentation(pool) == 1);
    pool->fit.request = 0; /* not measured yet */
    cr_expect(bfc_pool_fragmentation(pool) < 0);
    stats->in_use = 0; /* all of it could go back to the device */
    cr_expect(bfc_pool_fragmentation(pool) == 0);
    stats->ready = UINT64_MAX;
    cr_expect(bfc_pool_cached(stats) == UINT64_MAX);
    *stats = (struct bfc_pool_stats){0};
    cr_expect(bfc_pool_hit_rate(stats) < 0);
    cr_expect(bfc_pool_fragmentation(pool) == 0);
}

Test(reader, finds_configured_values) {
    size_t length;
    cr_assert(read_published(sizeof segment) == BFC_READ_OK);
    const char *value = bfc_job_configured(&job, "BFC_FREE", &length);
    cr_expect(value && length == 4 && memcmp(value, "lazy", 4) == 0);
    cr_expect(bfc_job_configured(&job, "BFC_FRE", &length) == NULL);
    cr_expect(bfc_job_configured(&job, "BFC", &length) == NULL);
}

Test(reader, refuses_what_is_too_short) {
    static const size_t sizes[] = {1, 8, 15, 16, 4096, sizeof segment - 1};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        cr_expect(read_published(sizes[i]) == BFC_READ_REFUSED);
        cr_expect(strstr(reason, "truncated"), "%s", reason);
    }
}

Test(reader, tells_a_segment_in_the_making) {
    cr_expect(read_published(0) == BFC_READ_YOUNG);
    segment.header.magic = 0;
    cr_expect(read_published(sizeof segment) == BFC_READ_YOUNG);
}

Test(reader, refuses_another_version_whatever_its_size) {
    segment.header.version = 99;
    expect_refusal("version 99");
    cr_expect(read_published(64) == BFC_READ_REFUSED);
    cr_expect(strstr(reason, "version 99"), "%s", reason);
}

Test(reader, refuses_foreign_contents) {
    segment.header.magic = 0x1234;
    expect_refusal("not a segment of bfcpreload");
    segment.header.magic = __builtin_bswap64(BFC_SEGMENT_MAGIC);
    expect_refusal("byte order");
}

Test(reader, refuses_wrong_sizes) {
    segment.header.pool_count = 1000000;
    expect_refusal("sizes");
    segment.header.pool_count = BFC_SEGMENT_POOLS;
    segment.header.total_size++;
    expect_refusal("sizes");
}

Test(reader, refuses_texts_without_end) {
    memset(segment.header.command, 'x', sizeof segment.header.command);
    expect_refusal("not terminated");
    segment.header.command[0] = '\0';
    memset(segment.pools[3].device_name, 'x', sizeof segment.pools[3].device_name);
    segment.pools[3].state = BFC_POOL_ENDED;
    expect_refusal("pool 3");
}

Test(reader, refuses_impossible_pools) {
    segment.pools[1].state = 77;
    expect_refusal("pool 1");
    segment.pools[1].state = BFC_POOL_UNUSED;
    segment.pools[0].device = -1;
    expect_refusal("device");
}

Test(reader, refuses_another_process_than_its_name_says) {
    struct bfc_segment_name name = publish(sizeof segment);
    struct bfc_segment_name other = name;
    char text[64];
    snprintf(text, sizeof text, BFC_SEGMENT_NAME_PREFIX "%u.%lu.%d", name.uid,
             (unsigned long)name.pid_namespace, name.pid + 1);
    cr_assert(bfc_segment_name_parse(text, &other));
    cr_assert(renameat(directory, name.text, directory, text) == 0);
    cr_expect(bfc_segment_read(directory, &other, &job, reason, sizeof reason) == BFC_READ_REFUSED);
    cr_expect(bfc_segment_read(directory, &name, &job, reason, sizeof reason) == BFC_READ_ABSENT);
}

Test(reader, refuses_files_that_others_could_have_written) {
    struct bfc_segment_name name = publish(sizeof segment);
    cr_assert(fchmodat(directory, name.text, 0666, 0) == 0);
    cr_expect(bfc_segment_read(directory, &name, &job, reason, sizeof reason) == BFC_READ_REFUSED);
    cr_expect(strstr(reason, "may write"), "%s", reason);
}

Test(reader, does_not_follow_links_nor_wait_for_fifos) {
    struct bfc_segment_name name = publish(sizeof segment);
    cr_assert(renameat(directory, name.text, directory, "elsewhere") == 0);
    cr_assert(symlinkat("elsewhere", directory, name.text) == 0);
    cr_expect(bfc_segment_read(directory, &name, &job, reason, sizeof reason) == BFC_READ_REFUSED);
    cr_assert(unlinkat(directory, name.text, 0) == 0);
    cr_assert(mkfifoat(directory, name.text, 0600) == 0);
    cr_expect(bfc_segment_read(directory, &name, &job, reason, sizeof reason) == BFC_READ_REFUSED);
}

Test(reader, marks_a_copy_that_stays_odd) {
    segment.pools[0].stats.sequence = 7;
    cr_assert(read_published(sizeof segment) == BFC_READ_OK);
    cr_expect(job.torn == 1);
    cr_expect(job.pools[0].stats.allocations == 2000);
}

Test(names, accepts_only_what_the_format_makes) {
    struct bfc_segment_name name;
    cr_assert(bfc_segment_name_parse("bfcpreload.0.4026531836.12", &name));
    cr_expect(name.uid == 0 && name.pid_namespace == 4026531836u && name.pid == 12);
    static const char *const bad[] = {
        "",
        "bfcpreload.",
        "bfcpreload.0.1",
        "bfcpreload.0.1.0",
        "bfcpreload.0.1.-5",
        "bfcpreload.0.1.05",
        "bfcpreload.0.1.5x",
        "bfcpreload.+0.1.5",
        "bfcpreload. 0.1.5",
        "bfcpreload.4294967296.1.5",
        "bfcpreload.0.1.99999999999",
        "/bfcpreload.0.1.5",
        "bfcpreload.0.1.5/../x",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        cr_expect(!bfc_segment_name_parse(bad[i], &name), "%s", bad[i]);
}

/* --- liveness --- */

/* A child that has ended and been waited for. */
static pid_t dead_pid(void) {
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    cr_assert(waitpid(child, NULL, 0) == child);
    return child;
}

Test(reader, knows_and_sweeps_the_dead) {
    segment.header.pid = dead_pid();
    cr_assert(read_published(sizeof segment) == BFC_READ_OK);
    cr_expect(job.state == BFC_JOB_ENDED);
    cr_expect(bfc_segment_sweep(directory, &job.name, &job));
    cr_expect(bfc_segment_read(directory, &job.name, &job, reason, sizeof reason) ==
              BFC_READ_ABSENT);
}

Test(reader, knows_a_pid_that_was_given_again) {
    segment.header.start_time++;
    cr_assert(read_published(sizeof segment) == BFC_READ_OK);
    cr_expect(job.state == BFC_JOB_ENDED);
}

Test(reader, believes_the_futex) {
    segment.header.owner = FUTEX_OWNER_DIED;
    cr_assert(read_published(sizeof segment) == BFC_READ_OK);
    cr_expect(job.state == BFC_JOB_ENDED);
}

Test(reader, judges_other_pid_namespaces_by_the_futex_alone) {
    segment.header.pid_namespace++;
    segment.header.pid = dead_pid();
    cr_assert(read_published(sizeof segment) == BFC_READ_OK);
    cr_expect(job.state == BFC_JOB_UNKNOWN);
    cr_expect(!bfc_segment_sweep(directory, &job.name, &job));
    segment.header.owner = 4242;
    cr_assert(read_published(sizeof segment) == BFC_READ_OK);
    cr_expect(job.state == BFC_JOB_RUNNING);
}

Test(reader, does_not_sweep_the_living) {
    cr_assert(read_published(sizeof segment) == BFC_READ_OK);
    cr_expect(!bfc_segment_sweep(directory, &job.name, &job));
    cr_expect(!bfc_segment_sweep(directory, &job.name, NULL));
}

Test(reader, sweeps_unreadable_leftovers_of_the_dead) {
    segment.header.pid = dead_pid();
    segment.header.version = 99;
    struct bfc_segment_name name = publish(sizeof segment);
    cr_expect(bfc_segment_sweep(directory, &name, NULL));
}

Test(reader, lists_in_the_order_of_pids) {
    static const int pids[] = {30, 4, 200, 1, 5};
    struct bfc_segment_name *names;
    for (size_t i = 0; i < 5; i++) {
        segment.header.pid = pids[i];
        publish(16);
    }
    close(openat(directory, "something.else", O_WRONLY | O_CREAT, 0600));
    cr_assert(bfc_segment_list(directory, &names) == 5);
    for (int i = 1; i < 5; i++)
        cr_expect(names[i - 1].pid < names[i].pid);
    free(names);
}

/* A child cuts the file off and mends it as fast as it can while we read. */
Test(reader, survives_truncation_under_it) {
    struct bfc_segment_name name = publish(sizeof segment);
    int file = openat(directory, name.text, O_RDWR);
    pid_t child = fork();
    if (child == 0) {
        for (;;)
            if (ftruncate(file, 0) || pwrite(file, &segment, sizeof segment, 0) < 0)
                _exit(1);
    }
    int seen[4] = {0};
    for (int i = 0; i < 20000; i++)
        seen[bfc_segment_read(directory, &name, &job, reason, sizeof reason)]++;
    kill(child, SIGKILL);
    cr_expect(waitpid(child, NULL, 0) == child);
    cr_expect(seen[BFC_READ_ABSENT] == 0);
}
