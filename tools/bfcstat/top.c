/* bfcstat top: shows the devices and jobs in the terminal and refreshes the view. For the selected
 * job it shows a curve of the memory in use, how its device's memory is used, and the map of its
 * regions or histograms.
 *
 * All shared-memory segments are read once in each interval (--interval); rates are differences
 * between two readings. Keys are those of htop where it has the same function. Below 110 columns or
 * 24 lines less is shown.
 */
#include <inttypes.h>
#include <locale.h>
#include <ncurses.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/numbers.h"
#include "tools/bfcstat/bfcstat.h"
#include "tools/bfcstat/identity.h"
#include "tools/job/client.h"
#include "tools/text/print_text.h"

#define HISTORY 128u
#define TRACKS 256u
#define MOST_ROWS 512u

enum colour { PLAIN, USE, READY, PENDING, DEVICE, BAD };

/* Values of a pool from the last reading, and the bytes in use at the last HISTORY readings. */
struct track {
    int32_t pid;
    unsigned pool;
    uint64_t allocations, waits, fences;
    /* how many allocations, waits and fences there are in a second */
    double allocations_rate, waits_rate, fences_rate;
    uint64_t in_use[HISTORY];
    unsigned looks;
};

struct row {
    const struct bfc_job *job;
    const struct bfc_segment_pool *pool;
    unsigned index; /* index of the pool in job->pools */
    struct track *track;
};

enum lower { SHOW_MAP, SHOW_HISTOGRAMS, LOWER_KINDS };
enum order { BY_PID, BY_IN_USE, BY_CACHED, BY_RATE, ORDERS };
static const char *const order_names[] = {"pid", "in use", "cached", "rate"};

static struct {
    struct findings findings;
    struct identities identities;
    struct row rows[MOST_ROWS];
    size_t row_count, selected;
    struct track tracks[TRACKS];
    enum lower lower;
    enum order order;
    bool paused, help, over;
    int32_t asked; /* pid of the job to trim if the next key is y; 0: no job */
    double interval, last_look;
    char message[128];
} top;

static struct track *find_track(int32_t pid, unsigned pool) {
    for (size_t i = 0; i < TRACKS; i++)
        if (top.tracks[i].pid == pid && top.tracks[i].pool == pool)
            return &top.tracks[i];
    static size_t oldest;
    struct track *track = &top.tracks[oldest++ % TRACKS];
    *track = (struct track){.pid = pid, .pool = pool};
    return track;
}

static double rate_of(uint64_t now, uint64_t before, double seconds) {
    return now > before && seconds > 0 ? (double)(now - before) / seconds : 0;
}

static void update_track(struct track *track, const struct bfc_segment_pool *pool, double seconds) {
    uint64_t waits = pool->host_waits + pool->stats.waits;
    if (track->looks > 0) {
        track->allocations_rate = rate_of(pool->stats.allocations, track->allocations, seconds);
        track->waits_rate = rate_of(waits, track->waits, seconds);
        track->fences_rate = rate_of(pool->fences, track->fences, seconds);
    }
    track->allocations = pool->stats.allocations;
    track->waits = waits;
    track->fences = pool->fences;
    track->in_use[track->looks++ % HISTORY] = pool->stats.in_use;
}

static int compare_falling(uint64_t a, uint64_t b) {
    return a < b ? 1 : a > b ? -1 : 0;
}

static int by_order(const void *left, const void *right) {
    const struct row *a = left, *b = right;
    int result = 0;
    if (top.order == BY_IN_USE)
        result = compare_falling(a->pool->stats.in_use, b->pool->stats.in_use);
    else if (top.order == BY_CACHED)
        result =
            compare_falling(bfc_pool_cached(&a->pool->stats), bfc_pool_cached(&b->pool->stats));
    else if (top.order == BY_RATE)
        result = compare_falling((uint64_t)a->track->allocations_rate,
                                 (uint64_t)b->track->allocations_rate);
    if (result == 0)
        result = a->job->header.pid - b->job->header.pid;
    return result ? result : (int)a->index - (int)b->index;
}

static void add_rows(const struct bfc_job *job, double seconds) {
    for (unsigned i = 0; i < BFC_SEGMENT_POOLS && top.row_count < MOST_ROWS; i++) {
        if (job->pools[i].state != BFC_POOL_ACTIVE)
            continue;
        struct track *track = find_track(job->header.pid, i);
        update_track(track, &job->pools[i], seconds);
        top.rows[top.row_count++] = (struct row){job, &job->pools[i], i, track};
    }
}

/* Reads all shared-memory segments again. The pool that was selected stays selected. */
static void read_jobs(int directory) {
    double now = bfc_now_seconds(), seconds = now - top.last_look;
    const struct track *kept = top.row_count ? top.rows[top.selected].track : NULL;
    free_findings(&top.findings);
    top.findings = (struct findings){0};
    top.row_count = top.selected = 0;
    top.last_look = now;
    if (!find_jobs(directory, &top.findings) || !find_gpus(&top.findings) ||
        !identify_jobs(&top.identities, KUBELET_LOGS, &top.findings))
        return;
    for (size_t i = 0; i < top.findings.job_count; i++)
        add_rows(&top.findings.jobs[i], seconds);
    if (top.row_count)
        qsort(top.rows, top.row_count, sizeof top.rows[0], by_order);
    for (size_t i = 0; i < top.row_count; i++)
        if (top.rows[i].track == kept)
            top.selected = i;
}

static void put_rule(int line, const char *text) {
    attron(A_REVERSE);
    mvprintw(line, 0, "%-*.*s", COLS, COLS, text);
    attroff(A_REVERSE);
}

/* Writes a formatted text to line `line` of the screen, cut off at the right margin. */
PRINTF_LIKE(2, 3) static void put_line(int line, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    mvaddnstr(line, 0, text, COLS);
}

/* With fewer columns than this, the table leaves out values that `bfcstat PID` shows as well, so
 * that there is room for the jobs' commands. */
#define WIDE 110

/* Returns the width of the table's column of PCI addresses. It is wider than usual if an address
 * has a domain other than 0. */
static int bus_id_width(void) {
    char text[GPU_SHORT_TEXT];
    size_t width = 7;
    for (size_t i = 0; i < top.findings.gpu_count; i++)
        width = bfc_max(width,
                        strlen(gpu_short_bus_id(top.findings.gpus[i].bus_id, text, sizeof text)));
    return (int)width;
}

struct cells {
    const char *pid, *bus_id, *uuid, *in_use, *cached, *reserved, *hit_rate, *allocations, *waits,
        *fences, *failures, *command;
};

static const char *columns_text(const struct cells *cells, char *text, size_t size) {
    int used = snprintf(text, size, "%7s %-*s %-8s %8s %8s ", cells->pid, bus_id_width(),
                        cells->bus_id, cells->uuid, cells->in_use, cells->cached);
    char *rest = text + used;
    size -= (size_t)used;
    if (COLS >= WIDE)
        snprintf(rest, size, "%8s %7s %8s %7s %7s %3s  %s", cells->reserved, cells->hit_rate,
                 cells->allocations, cells->waits, cells->fences, cells->failures, cells->command);
    else
        snprintf(rest, size, "%8s %3s  %s", cells->allocations, cells->failures, cells->command);
    return text;
}

static void draw_title(void) {
    char clock[16], refused[48] = "";
    time_t now = time(NULL);
    struct tm parts;
    localtime_r(&now, &parts);
    strftime(clock, sizeof clock, "%H:%M:%S", &parts);
    if (top.findings.refused_count)
        snprintf(refused, sizeof refused, " and %zu unreadable", top.findings.refused_count);
    put_line(0, "bfcstat top  %s  %zu job%s%s  every %.3g s%s  sorted by %s", clock,
             top.findings.job_count, bfc_plural(top.findings.job_count), refused, top.interval,
             top.paused ? " (paused)" : "", order_names[top.order]);
}

static void draw_gpu(int line, const struct gpu *gpu) {
    char number[16] = "-", bus_id[GPU_SHORT_TEXT], uuid[GPU_SHORT_TEXT], name[96], a[TEXT_FIGURE],
         b[TEXT_FIGURE], c[TEXT_FIGURE], d[TEXT_FIGURE], e[TEXT_FIGURE], f[TEXT_FIGURE];
    bool known = gpu->used_known;
    if (gpu->number >= 0)
        snprintf(number, sizeof number, "%d", gpu->number);
    put_line(line, "%3s %-*s %-8s %8s %8s %8s %8s %8s %8s%s%s", number, bus_id_width(),
             gpu_short_bus_id(gpu->bus_id, bus_id, sizeof bus_id),
             gpu_short_uuid(gpu->uuid, uuid, sizeof uuid), bfc_bytes_text(gpu->total, a, sizeof a),
             known ? bfc_bytes_text(gpu->used, b, sizeof b) : "-",
             bfc_bytes_text(gpu->in_use, c, sizeof c), bfc_bytes_text(gpu->cached, d, sizeof d),
             known ? bfc_bytes_text(gpu_others(gpu), e, sizeof e) : "-",
             known ? bfc_bytes_text(gpu_free(gpu), f, sizeof f) : "-", COLS >= WIDE ? "  " : "",
             COLS >= WIDE ? text_printable(gpu->name, name, sizeof name) : "");
}

/* Draws a line for each device, on at most a third of the screen. Returns the number of the next
 * free line. */
static int draw_gpus(int line) {
    size_t count = top.findings.gpu_count, room = (size_t)LINES / 3;
    char text[160];
    if (count == 0 || room < 2)
        return line;
    snprintf(text, sizeof text, "%3s %-*s %-8s %8s %8s %8s %8s %8s %8s%s", "GPU", bus_id_width(),
             "BUS ID", "UUID", "MEMORY", "USED", "IN USE", "CACHED", "OTHERS", "FREE",
             COLS >= WIDE ? "  NAME" : "");
    put_rule(line++, text);
    size_t shown = count <= room ? count : room - 1;
    for (size_t i = 0; i < shown; i++)
        draw_gpu(line++, &top.findings.gpus[i]);
    if (shown < count)
        put_line(line++, "... and %zu more device%s", count - shown, bfc_plural(count - shown));
    return line;
}

static void draw_head(int line) {
    char text[256];
    put_rule(line,
             columns_text(&(struct cells){"PID", "BUS ID", "UUID", "IN USE", "CACHED", "RESERVED",
                                          "HIT", "ALLOC/s", "WAIT/s", "FENCE/s", "OOM", "COMMAND"},
                          text, sizeof text));
}

/* Writes what the column of commands shows of a job: its user if that is not who runs bfcstat,
 * whether it is asleep or waits for memory, its rank and its command. If the terminal has few
 * columns, this only says "asleep" or "waits", and draw_name shows the details for the selected
 * job. */
static const char *command_text(const struct row *row, char *text, size_t size) {
    const struct bfc_waiter *waiter = job_waiter(row->job, row->index);
    const char *other = other_user(&top.findings, row->job);
    char waiting[WAITER_TEXT], user[72] = "", rank[24] = "", command[256], asleep[SLEEP_TEXT];
    if (other)
        snprintf(user, sizeof user, "%s: ", other);
    if (row->job->header.rank >= 0)
        snprintf(rank, sizeof rank, "rank %" PRId32 ": ", row->job->header.rank);
    waiter_text(waiter, waiting, sizeof waiting);
    job_sleep_text(row->job, row->pool, asleep, sizeof asleep);
    snprintf(text, size, "%s%s%s%s%s%s%s", user, *asleep && COLS < WIDE ? "asleep" : asleep,
             *asleep ? ": " : "", waiter && COLS < WIDE ? "waits" : waiting, waiter ? ": " : "",
             rank, job_command(row->job, command, sizeof command));
    return text;
}

static void draw_row(int line, const struct row *row, bool selected) {
    const struct bfc_pool_stats *stats = &row->pool->stats;
    char a[TEXT_FIGURE], b[TEXT_FIGURE], c[TEXT_FIGURE], d[TEXT_FIGURE], pid[16],
        bus_id[GPU_SHORT_TEXT], uuid[GPU_SHORT_TEXT], allocations[24], waits[24], fences[24],
        failures[24], command[512], text[1024];
    snprintf(pid, sizeof pid, "%" PRId32, row->job->header.pid);
    snprintf(allocations, sizeof allocations, "%.0f", row->track->allocations_rate);
    snprintf(waits, sizeof waits, "%.0f", row->track->waits_rate);
    snprintf(fences, sizeof fences, "%.0f", row->track->fences_rate);
    snprintf(failures, sizeof failures, "%" PRIu64, stats->out_of_memory);
    columns_text(&(struct cells){pid, pool_bus_id(row->pool, bus_id, sizeof bus_id),
                                 pool_uuid(row->pool, uuid, sizeof uuid),
                                 bfc_bytes_text(stats->in_use, a, sizeof a),
                                 bfc_bytes_text(bfc_pool_cached(stats), b, sizeof b),
                                 bfc_bytes_text(pool_held(row->pool), c, sizeof c),
                                 bfc_share_text(bfc_pool_hit_rate(stats), d, sizeof d), allocations,
                                 waits, fences, failures,
                                 command_text(row, command, sizeof command)},
                 text, sizeof text);
    attron(selected ? A_REVERSE : stats->out_of_memory ? COLOR_PAIR(BAD) : A_NORMAL);
    mvprintw(line, 0, "%-*.*s", selected ? COLS : 0, COLS, text);
    attrset(A_NORMAL);
}

/* Draws at most `most` lines: the rows around the selected one, and how many are not shown. Returns
 * the number of the next free line. */
static int draw_rows(int line, size_t most) {
    size_t shown = top.row_count <= most ? top.row_count : bfc_max(most - 1, 1);
    size_t first = top.selected >= shown ? top.selected - shown + 1 : 0;
    for (size_t i = first; i < first + shown; i++)
        draw_row(line++, &top.rows[i], i == top.selected);
    if (shown < top.row_count && most > 1)
        put_line(line++, "%7s %zu above, %zu below", "...", first, top.row_count - first - shown);
    if (top.row_count == 0 && top.findings.refused_count)
        put_line(line++, "no jobs with pools that can be read; `bfcstat` says of %zu why",
                 top.findings.refused_count);
    else if (top.row_count == 0)
        put_line(line++, "no jobs with pools");
    return line;
}

static void draw_sparkline(int line, const struct track *track) {
    static const char *const levels[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char plain[] = "_.-=+*%#";
    bool utf8 = MB_CUR_MAX > 1;
    unsigned room = COLS > 20 ? (unsigned)COLS - 20 : 1;
    unsigned shown = (unsigned)bfc_min(bfc_min(track->looks, HISTORY), room);
    uint64_t most = 1;
    for (unsigned i = track->looks - shown; i != track->looks; i++)
        most = track->in_use[i % HISTORY] > most ? track->in_use[i % HISTORY] : most;
    char figure[TEXT_FIGURE];
    mvprintw(line, 0, "in use %9s ",
             bfc_bytes_text(track->in_use[(track->looks - 1) % HISTORY], figure, sizeof figure));
    attron(COLOR_PAIR(USE));
    for (unsigned i = track->looks - shown; i != track->looks; i++) {
        unsigned level = (unsigned)((double)track->in_use[i % HISTORY] / (double)most * 7.0 + 0.5);
        if (utf8)
            addstr(levels[level]);
        else
            addch((chtype)(unsigned char)plain[level]);
    }
    attroff(COLOR_PAIR(USE));
}

static void put_cells(int cells, char sign, enum colour colour) {
    attron(COLOR_PAIR(colour));
    while (cells-- > 0)
        addch((chtype)(unsigned char)sign);
    attroff(COLOR_PAIR(colour));
}

/* Draws the memory of the pool's device as a bar: what is in use, pending and ready in this pool,
 * what everyone else on the device uses, and what is free. For a pool of host memory the whole bar
 * is the memory that may be spilled (BFC_SPILL). */
static void draw_device(int line, const struct bfc_segment_pool *pool) {
    const struct bfc_pool_stats *stats = &pool->stats;
    const struct gpu *gpu = bfc_pool_is_host(pool) ? NULL : gpu_of(&top.findings, pool);
    uint64_t own = pool_held(pool), asleep = bfc_min(pool->pages.asleep, stats->in_use);
    uint64_t cached = bfc_subtract_saturating(stats->ready, pool->pages.asleep - asleep);
    uint64_t all = gpu && gpu->used_known ? gpu->used : own;
    double total = pool->device_total ? (double)pool->device_total : 1;
    double width = COLS > 20 ? COLS - 20 : 1;
    int use = (int)((double)(stats->in_use - asleep) / total * width + 0.5);
    int pending = (int)((double)(stats->pending + stats->deferred) / total * width + 0.5);
    int ready = (int)((double)cached / total * width + 0.5);
    int others = (int)((double)bfc_subtract_saturating(all, own) / total * width + 0.5);
    int left = (int)width - use - pending - ready - others;
    char figure[TEXT_FIGURE];
    if (use < 0 || pending < 0 || ready < 0 || others < 0 || left < -4)
        return;
    mvprintw(line, 0, "%-6s %9s ", bfc_pool_is_host(pool) ? "host" : "device",
             bfc_bytes_text(pool->device_total, figure, sizeof figure));
    put_cells(use, '#', USE);
    put_cells(pending, '~', PENDING);
    put_cells(ready, '.', READY);
    put_cells(others, 'x', PLAIN);
    put_cells(left, ' ', DEVICE);
}

static void put_cell(uint8_t cell) {
    unsigned used = cell >> 4, pending = cell & 15;
    if (cell == BFC_MAP_BARE)
        put_cells(1, ' ', PLAIN);
    else if (used)
        put_cells(1, used == 15 ? '#' : '+', USE);
    else
        put_cells(1, pending ? '~' : '.', pending ? PENDING : READY);
}

/* Merges several cells of a region's map into one, which counts as full only if all of them are
 * full, and as having no memory only if none of them has memory. */
static uint8_t merge_cells(const uint8_t *cells, unsigned count) {
    unsigned used = 0, pending = 0, bare = 0, full = 0;
    for (unsigned i = 0; i < count; i++) {
        bare += cells[i] == BFC_MAP_BARE;
        full += cells[i] != BFC_MAP_BARE && cells[i] >> 4 == 15;
        used += cells[i] != BFC_MAP_BARE && cells[i] >> 4;
        pending += cells[i] != BFC_MAP_BARE && cells[i] & 15;
    }
    if (bare == count)
        return BFC_MAP_BARE;
    return (uint8_t)((full == count ? 15u : used > 0) << 4 | (pending > 0));
}

static void draw_region(int line, const struct bfc_map_row *region) {
    unsigned cells = bfc_map_row_cells(region);
    unsigned width = COLS > 20 ? (unsigned)COLS - 20 : 1;
    char size[TEXT_FIGURE];
    width = width < cells ? width : cells;
    mvprintw(line, 0, "%16s ", bfc_bytes_text(region->size, size, sizeof size));
    for (unsigned column = 0; column < width; column++) {
        unsigned first = column * cells / width, next = (column + 1) * cells / width;
        put_cell(merge_cells(region->cells + first, next - first));
    }
}

/* Draws a line for each region of the pool. If lines run out, draws how many regions are not
 * shown. */
static void draw_map(int line, const struct row *row) {
    const struct bfc_map *map = &row->job->map;
    uint64_t hidden = map->left_out;
    for (uint64_t i = 0; i < map->rows; i++) {
        if (map->row[i].pool != row->index)
            continue;
        if (line < LINES - 2)
            draw_region(line++, &map->row[i]);
        else
            hidden++;
    }
    if (hidden && line < LINES - 1)
        mvprintw(line, 0, "%16s and %" PRIu64 " more region%s", "", hidden, bfc_plural(hidden));
}

static void draw_histograms(int line, const struct row *row) {
    uint64_t sizes[BFC_SIZE_BINS], most = 1;
    char a[TEXT_FIGURE], b[TEXT_FIGURE], c[TEXT_FIGURE], d[TEXT_FIGURE];
    const struct bfc_segment_pool *pool = row->pool;
    bfc_pool_sizes(pool, sizes);
    for (unsigned i = 0; i < BFC_SIZE_BINS; i++)
        most = sizes[i] > most ? sizes[i] : most;
    put_line(line++, "to allocate: half within %s, 99 %% within %s; to free: %s, %s",
             text_duration(bfc_latency_quantile(pool->allocate_latency, 0.5), a, sizeof a),
             text_duration(bfc_latency_quantile(pool->allocate_latency, 0.99), b, sizeof b),
             text_duration(bfc_latency_quantile(pool->free_latency, 0.5), c, sizeof c),
             text_duration(bfc_latency_quantile(pool->free_latency, 0.99), d, sizeof d));
    unsigned hidden = 0;
    for (unsigned i = 0; i < BFC_SIZE_BINS; i++) {
        if (!sizes[i])
            continue;
        if (line >= LINES - 2) {
            hidden++;
            continue;
        }
        mvprintw(line++, 0, "%9s %13s ", bfc_bytes_text(UINT64_C(1) << i, a, sizeof a),
                 text_count(sizes[i], b, sizeof b));
        put_cells((int)((double)sizes[i] / (double)most * (COLS - 26)) + 1, '*', USE);
    }
    if (hidden && line < LINES - 1)
        mvprintw(line, 0, "%23s and %u larger sizes", "", hidden);
}

static void draw_help(void) {
    static const char *const lines[] = {
        "up, down, j, k   select a job",
        "tab, m, h        map or histograms of the selected job",
        "s, >             sort by the next column",
        "t                have the selected job give cached memory back; it asks first",
        "+, -             refresh less or more often",
        "space            pause",
        "?, F1            show or hide this help",
        "q, F10           quit",
        "",
        "A GPU's memory: USED by everyone, of that IN USE and CACHED by the jobs below,",
        "and by OTHERS: jobs that you may not read, processes without bfcpreload, and",
        "contexts and code; FREE as the driver says.",
        "UUID host: host memory in place of the device's (BFC_SPILL)",
        "# in use  + partly in use  ~ pending  . ready  x others  blank: free",
    };
    for (int i = 0; i < (int)(sizeof lines / sizeof lines[0]) && i + 3 < LINES - 1; i++)
        mvprintw(i + 3, 1, "%.*s", COLS - 1, lines[i]);
}

/* Draws a line with the selected pool's job and device. Below it, draws lines on the job's sleep,
 * its wait for memory, the pool's fragmentation and its plan, as far as there is something to show.
 * Returns the number of the next free line. */
static int draw_name(int line, const struct row *row) {
    char name[96], text[256], a[TEXT_FIGURE], b[TEXT_FIGURE], c[TEXT_FIGURE], waiting[WAITER_TEXT],
        asleep[SLEEP_TEXT];
    const struct bfc_segment_pool *pool = row->pool;
    const struct bfc_waiter *waiter = job_waiter(row->job, row->index);
    double fragmentation = bfc_pool_fragmentation(pool);
    snprintf(text, sizeof text, "%" PRId32 ", which calls it device %" PRId64 ": %s%s",
             row->job->header.pid, pool->device,
             bfc_pool_is_host(pool) ? "host memory in place of " : "",
             text_printable(pool->device_name, name, sizeof name));
    put_rule(line++, text);
    if (*job_sleep_text(row->job, pool, asleep, sizeof asleep))
        put_line(line++, "%s", asleep);
    if (waiter)
        put_line(line++, "%s", waiter_text(waiter, waiting, sizeof waiting));
    if (fragmentation >= 0 && pool->stats.in_use && pool->stats.ready)
        put_line(line++, "%s of ready cannot serve %s, asked for lately",
                 bfc_share_text(fragmentation, a, sizeof a),
                 bfc_bytes_text(pool->fit.request, b, sizeof b));
    if (pool->plan.source)
        put_line(line++, "plan: followed %s, missed %s, lost %s times",
                 text_count(pool->plan.followed, a, sizeof a),
                 text_count(pool->plan.missed, b, sizeof b),
                 text_count(pool->plan.lost, c, sizeof c));
    return line;
}

static void draw_detail(int line, const struct row *row) {
    line = draw_name(line, row);
    draw_sparkline(line++, row->track);
    draw_device(line++, row->pool);
    if (top.lower == SHOW_MAP)
        draw_map(line, row);
    else
        draw_histograms(line, row);
}

/* How many lines are needed at least for the selected job: its name, its curve, its device, and one
 * line of a map. */
#define DETAIL_LINES 4

static void draw_jobs(void) {
    int line = draw_gpus(1);
    draw_head(line++);
    int room = LINES - 1 - line, most = room > 2 * DETAIL_LINES ? room / 2 - 1 : room;
    line = draw_rows(line, most > 0 ? (size_t)most : 1);
    if (top.row_count && line + DETAIL_LINES < LINES)
        draw_detail(line, &top.rows[top.selected]);
}

static void draw_screen(void) {
    erase();
    draw_title();
    if (top.help)
        draw_help();
    else
        draw_jobs();
    put_rule(LINES - 1,
             *top.message ? top.message : " ? help  tab map/histograms  s sort  t trim  q quit");
    refresh();
}

static const struct bfc_job *find_row_job(int32_t pid) {
    for (size_t i = 0; i < top.row_count; i++)
        if (top.rows[i].job->header.pid == pid)
            return top.rows[i].job;
    return NULL;
}

static void ask_to_trim(void) {
    char figure[TEXT_FIGURE];
    if (!top.row_count)
        return;
    const struct bfc_job *job = top.rows[top.selected].job;
    top.asked = job->header.pid;
    snprintf(top.message, sizeof top.message,
             " have %" PRId32 " give back what it caches, %s? y: yes, any other key: no", top.asked,
             bfc_bytes_text(job_totals(job).cached, figure, sizeof figure));
}

static void trim_job(int directory, int32_t pid) {
    char reason[512], figure[TEXT_FIGURE];
    uint64_t released = 0;
    const struct bfc_job *job = find_row_job(pid);
    if (!job)
        return;
    if (bfc_segment_trim(directory, &job->name, UINT64_MAX, 2000, &released, reason,
                         sizeof reason) == BFC_ASK_DONE)
        snprintf(top.message, sizeof top.message, " %" PRId32 " gave back %s", job->header.pid,
                 bfc_bytes_text(released, figure, sizeof figure));
    else
        snprintf(top.message, sizeof top.message, " %" PRId32 " does not answer", job->header.pid);
}

static void move_selection(int by) {
    if (by < 0 && top.selected > 0)
        top.selected--;
    else if (by > 0 && top.selected + 1 < top.row_count)
        top.selected++;
}

static void change_interval(double factor) {
    top.interval *= factor;
    if (top.interval < 0.1)
        top.interval = 0.1;
    if (top.interval > 60)
        top.interval = 60;
}

static void take_key(int key, int directory) {
    int32_t asked = top.asked;
    top.message[0] = '\0';
    top.asked = 0;
    if (asked) {
        if (key == 'y' || key == 'Y')
            trim_job(directory, asked);
        return;
    }
    switch (key) {
    case 'q':
    case KEY_F(10):
        top.over = true;
        break;
    case '?':
    case KEY_F(1):
        top.help = !top.help;
        break;
    case KEY_UP:
    case 'k':
        move_selection(-1);
        break;
    case KEY_DOWN:
    case 'j':
        move_selection(1);
        break;
    case '\t':
        top.lower = (enum lower)((top.lower + 1) % LOWER_KINDS);
        break;
    case 'm':
    case 'h':
        top.lower = key == 'm' ? SHOW_MAP : SHOW_HISTOGRAMS;
        break;
    case 's':
    case '>':
        top.order = (enum order)((top.order + 1) % ORDERS);
        break;
    case 't':
        ask_to_trim();
        break;
    case '+':
        change_interval(2);
        break;
    case '-':
        change_interval(0.5);
        break;
    case ' ':
        top.paused = !top.paused;
        break;
    default:
        break;
    }
}

static void start_colours(void) {
    const char *no_colour = getenv("NO_COLOR");
    if (!has_colors() || (no_colour && *no_colour))
        return;
    start_color();
    use_default_colors();
    init_pair(USE, COLOR_BLUE, -1);
    init_pair(READY, COLOR_GREEN, -1);
    init_pair(PENDING, COLOR_YELLOW, -1);
    init_pair(DEVICE, -1, -1);
    init_pair(BAD, COLOR_RED, -1);
}

/* Whether the terminal was closed, so that no key will come. SIGHUP does not always say so: the
 * signal may be ignored (nohup), or is not sent because the terminal is not the controlling
 * terminal of this process. */
static bool is_terminal_gone(void) {
    struct pollfd terminal = {.fd = STDIN_FILENO, .events = POLLIN};
    return poll(&terminal, 1, 0) > 0 && (terminal.revents & (POLLHUP | POLLERR | POLLNVAL));
}

static void run_screen(int directory) {
    read_jobs(directory);
    while (!top.over) {
        draw_screen();
        double left = top.last_look + top.interval - bfc_now_seconds();
        timeout(top.paused ? -1 : left > 0 ? (int)(left * 1000) + 1 : 0);
        int key = getch();
        if (key != ERR)
            take_key(key, directory);
        else if (is_terminal_gone())
            return;
        if (!top.paused && bfc_now_seconds() >= top.last_look + top.interval)
            read_jobs(directory);
    }
}

int run_top(const struct request *request, int directory) {
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
        fputs("bfcstat: top needs a terminal for its keys and its picture\n", stderr);
        return REFUSED;
    }
    top.interval = request->interval > 0 ? request->interval : 1;
    setlocale(LC_CTYPE, "");
    SCREEN *screen = newterm(NULL, stdout, stdin);
    if (!screen) {
        fputs("bfcstat: top needs a terminal (TERM says which)\n", stderr);
        return REFUSED;
    }
    cbreak();
    noecho();
    curs_set(0);
    keypad(stdscr, TRUE);
    start_colours();
    run_screen(directory);
    endwin();
    delscreen(screen);
    free_findings(&top.findings);
    free_identities(&top.identities);
    return SHOWN;
}
