/*
 * A training loop: plays a list of lifetimes (id,lower,upper,size in a CSV) again and again, by
 * allocations and frees whose contents it checks at both ends, and tells of each period what was
 * live, what the pool has reserved, how well a plan was followed, and how long it took, as one line
 * of JSON.
 *
 *   [CHANGED=PERCENT] [SHAPE=1] [SEED=NUMBER] [PAUSE=MS] [REST=PERIODS] [STAY=1]
 *       loop CSV SCALE PERIODS
 *
 * Sizes are SCALE times those of the file. In each period CHANGED percent of the allocations, drawn
 * anew, have half to one and a half times their size; with SHAPE a third of these has, a third does
 * not come at all, and before a third comes one more. After each period it sleeps for PAUSE ms.
 * With REST it ends as soon as so many periods in a row followed a plan and made no call for pages.
 * With STAY it waits for its input's end. (Not arguments, since a plan is of a program with its
 * arguments.)
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "layout/plan.h"
#include "tests/integration/interpose/program.h"
#include "tests/integration/interpose/published.h"

enum { ROWS_MOST = 1 << 16 };

struct row {
    unsigned long long lower, upper, size;
    CUdeviceptr address;
    unsigned long long bytes, mark;
};

struct step {
    unsigned long long time;
    unsigned row;
    int allocates;
};

static struct row rows[ROWS_MOST], extras[ROWS_MOST];
static struct step steps[2 * ROWS_MOST];
static unsigned count;
static unsigned long long seed, live, most_live, most_reserved; /* the last: of the period */
static unsigned long long wall, processor; /* ns of the period: by the clock; of this thread */

static unsigned below(unsigned bound) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)((seed >> 33) % bound);
}

static void read_rows(const char *path, unsigned scale) {
    FILE *file = fopen(path, "r");
    char line[256];
    if (!file || !fgets(line, sizeof line, file))
        exit(3);
    while (count < ROWS_MOST && fgets(line, sizeof line, file)) {
        const char *comma = strchr(line, ',');
        struct row *row = &rows[count];
        if (comma && sscanf(comma, ",%llu,%llu,%llu", &row->lower, &row->upper, &row->size) == 3) {
            row->size *= scale;
            count++;
        }
    }
    fclose(file);
}

/* At equal times frees come first; then in the order of the file. */
static int by_time(const void *a, const void *b) {
    const struct step *p = a, *q = b;
    if (p->time != q->time)
        return p->time < q->time ? -1 : 1;
    return p->allocates != q->allocates ? p->allocates - q->allocates : (int)p->row - (int)q->row;
}

static void order_steps(void) {
    for (unsigned i = 0; i < count; i++) {
        steps[2 * i] = (struct step){rows[i].lower, i, 1};
        steps[2 * i + 1] = (struct step){rows[i].upper, i, 0};
    }
    qsort(steps, 2 * (size_t)count, sizeof *steps, by_time);
}

static unsigned long long now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (unsigned long long)time.tv_sec * 1000000000 + (unsigned long long)time.tv_nsec;
}

static void note_reserved(void) {
    const struct bfc_segment_pool *section = own_section();
    unsigned long long reserved = section ? section->stats.reserved : 0;
    most_reserved = reserved > most_reserved ? reserved : most_reserved;
}

static void allocate(struct row *row, unsigned long long bytes) {
    static unsigned long long marks;
    row->bytes = bytes < 16 ? 16 : bytes;
    row->mark = ++marks;
    CHECK(cuMemAlloc(&row->address, row->bytes));
    CHECK(cuMemcpyHtoD(row->address, &row->mark, sizeof row->mark));
    CHECK(cuMemcpyHtoD(row->address + row->bytes - 8, &row->mark, sizeof row->mark));
    live += bfc_plan_round(row->bytes);
    most_live = live > most_live ? live : most_live;
    note_reserved();
}

static void release(struct row *row) {
    unsigned long long first, last;
    if (!row->address)
        return;
    CHECK(cuMemcpyDtoH(&first, row->address, sizeof first));
    CHECK(cuMemcpyDtoH(&last, row->address + row->bytes - 8, sizeof last));
    if ((first != row->mark && row->bytes >= 16) || last != row->mark) {
        fprintf(stderr, "loop: a block of %llu bytes was overwritten\n", row->bytes);
        exit(4);
    }
    CHECK(cuMemFree(row->address));
    row->address = 0;
    live -= bfc_plan_round(row->bytes);
}

static void tell(unsigned period, unsigned changed) {
    const struct bfc_segment_pool *section = own_section();
    static const struct bfc_segment_pool none;
    section = section ? section : &none;
    const struct bfc_segment_plan *plan = &section->plan;
    printf("{\"period\": %u, \"changed\": %u, \"live\": %llu, \"reserved\": %llu, \"most\": %llu, "
           "\"reserve_calls\": %llu, \"followed\": %llu, \"missed\": %llu, \"busy\": %llu, "
           "\"resumed\": %llu, \"lost\": %llu, \"memory\": %llu, \"bound\": %llu, "
           "\"source\": %llu, \"page_calls\": %llu, \"wall_ns\": %llu, "
           "\"processor_ns\": %llu}\n",
           period, changed, most_live, (unsigned long long)section->stats.peak_reserved,
           most_reserved, (unsigned long long)section->stats.reserve_calls,
           (unsigned long long)plan->followed, (unsigned long long)plan->missed,
           (unsigned long long)plan->busy, (unsigned long long)plan->resumed,
           (unsigned long long)plan->lost, (unsigned long long)plan->memory,
           (unsigned long long)plan->bound, (unsigned long long)plan->source,
           (unsigned long long)section->pages.calls, wall, processor);
    fflush(stdout);
}

static unsigned variable(const char *name, unsigned otherwise) {
    const char *value = getenv(name);
    return value ? (unsigned)atoi(value) : otherwise;
}

static unsigned long long other_size(const struct row *row) {
    return row->size / 1000 * (500 + below(1001));
}

/* By SHAPE one of three: another size, nothing at all, or one more before it. */
static void allocate_changed(unsigned number) {
    unsigned kind = variable("SHAPE", 0) ? below(3) : 0;
    if (kind == 2)
        allocate(&extras[number], other_size(&rows[number]));
    if (kind != 1)
        allocate(&rows[number], kind == 0 ? other_size(&rows[number]) : rows[number].size);
}

static void play(unsigned period, unsigned percent) {
    unsigned changed = 0;
    unsigned long long wall_begin = now(CLOCK_MONOTONIC);
    unsigned long long processor_begin = now(CLOCK_THREAD_CPUTIME_ID);
    most_reserved = 0;
    for (unsigned i = 0; i < 2 * count; i++) {
        unsigned number = steps[i].row;
        if (!steps[i].allocates) {
            release(&rows[number]);
            release(&extras[number]);
        } else if (below(100) < percent) {
            changed++;
            allocate_changed(number);
        } else {
            allocate(&rows[number], rows[number].size);
        }
    }
    wall = now(CLOCK_MONOTONIC) - wall_begin;
    processor = now(CLOCK_THREAD_CPUTIME_ID) - processor_begin;
    tell(period, changed);
}

/* How many periods in a row, up to this one, followed a plan and made no call for pages. */
static unsigned resting(void) {
    static unsigned periods;
    static unsigned long long calls;
    const struct bfc_segment_pool *section = own_section();
    bool rests = section && section->plan.memory && section->pages.calls == calls;
    calls = section ? section->pages.calls : 0;
    return periods = rests ? periods + 1 : 0;
}

int main(int arguments, char **argument) {
    if (arguments != 4)
        return 2;
    read_rows(argument[1], (unsigned)atoi(argument[2]));
    order_steps();
    seed = variable("SEED", 1);
    use_primary(0);
    unsigned enough = variable("REST", ~0u);
    for (unsigned period = 0; period < (unsigned)atoi(argument[3]); period++) {
        play(period, variable("CHANGED", 0));
        if (resting() >= enough)
            break;
        usleep(variable("PAUSE", 0) * 1000);
    }
    if (variable("STAY", 0))
        getchar();
    return 0;
}
