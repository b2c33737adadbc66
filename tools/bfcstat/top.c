/*
 * bfcstat top: shows the jobs live in the terminal, and for the selected one a sparkline, its
 * device, and its map or its histograms.
 *
 * All segments are read once an interval; rates are differences between two readings. Keys are
 * those of htop where htop has the same function. With fewer than 110 columns, or 24 lines, less is
 * shown.
 */
#include <inttypes.h>
#include <locale.h>
#include <ncurses.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "tools/bfcstat/bfcstat.h"
#include "tools/job/client.h"
#include "tools/text/print_text.h"

#define HISTORY 128u
#define TRACKS 256u
#define MOST_ROWS 512u

enum colour { PLAIN, USE, READY, PENDING, DEVICE, BAD };

/* Figures of a pool that are kept from one reading to the next. */
struct track {
    int32_t pid;
    unsigned pool;
    uint64_t allocations, waits, fences;
    double allocations_rate, waits_rate, fences_rate; /* a second */
    uint64_t in_use[HISTORY];
    unsigned looks;
};

struct row {
    const struct bfc_job *job;
    const struct bfc_segment_pool *pool;
    unsigned index; /* index of the pool in its job */
    struct track *track;
};

enum lower { SHOW_MAP, SHOW_HISTOGRAMS, LOWER_KINDS };
enum order { BY_PID, BY_IN_USE, BY_CACHED, BY_RATE, ORDERS };
static const char *const order_names[] = {"pid", "in use", "cached", "rate"};

static struct {
    struct findings findings;
    struct row rows[MOST_ROWS];
    size_t row_count, selected;
    struct track tracks[TRACKS];
    enum lower lower;
    enum order order;
    bool paused, help, over;
    int32_t asked; /* pid of the job that `t` asks about; 0: none */
    double interval, last_look;
    char message[128];
} top;

/* --- looking --- */

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

/* Reads all jobs again. The selection stays on the same pool. */
static void read_jobs(int directory) {
    double now = bfc_now_seconds(), seconds = now - top.last_look;
    const struct track *kept = top.row_count ? top.rows[top.selected].track : NULL;
    free_findings(&top.findings);
    top.findings = (struct findings){0};
    top.row_count = top.selected = 0;
    top.last_look = now;
    if (!find_jobs(directory, &top.findings))
        return;
    for (size_t i = 0; i < top.findings.job_count; i++)
        add_rows(&top.findings.jobs[i], seconds);
    if (top.row_count)
        qsort(top.rows, top.row_count, sizeof top.rows[0], by_order);
    for (size_t i = 0; i < top.row_count; i++)
        if (top.rows[i].track == kept)
            top.selected = i;
}

/* --- drawing --- */

static void put_rule(int line, const char *text) {
    attron(A_REVERSE);
    mvprintw(line, 0, "%-*.*s", COLS, COLS, text);
    attroff(A_REVERSE);
}

/* With fewer columns than this, a row leaves out figures that `bfcstat PID` shows as well, so that
 * there is room for the command. */
#define WIDE 110

static const char *columns_text(const char *pid, const char *device, const char *in_use,
                                const char *cached, const char *reserved, const char *hit_rate,
                                const char *allocations, const char *waits, const char *fences,
                                const char *failures, const char *command, char *text,
                                size_t size) {
    if (COLS >= WIDE)
        snprintf(text, size, "%7s %3s %8s %8s %8s %7s %8s %7s %7s %3s  %s", pid, device, in_use,
                 cached, reserved, hit_rate, allocations, waits, fences, failures, command);
    else
        snprintf(text, size, "%7s %3s %8s %8s %8s %3s  %s", pid, device, in_use, cached,
                 allocations, failures, command);
    return text;
}

static void draw_head(void) {
    char text[256], clock[16];
    time_t now = time(NULL);
    struct tm parts;
    localtime_r(&now, &parts);
    strftime(clock, sizeof clock, "%H:%M:%S", &parts);
    snprintf(text, sizeof text, "bfcstat top  %s  %zu job%s  every %.3g s%s  sorted by %s", clock,
             top.findings.job_count, top.findings.job_count == 1 ? "" : "s", top.interval,
             top.paused ? " (paused)" : "", order_names[top.order]);
    mvprintw(0, 0, "%.*s", COLS, text);
    put_rule(1, columns_text("PID", "DEV", "IN USE", "CACHED", "RESERVED", "HIT", "ALLOC/s",
                             "WAIT/s", "FENCE/s", "OOM", "COMMAND", text, sizeof text));
}

/* Returns the command without the folder of its program, which would fill the column. */
static const char *short_command(const char *command) {
    const char *end = strchrnul(command, ' ');
    const char *slash = memrchr(command, '/', (size_t)(end - command));
    return slash ? slash + 1 : command;
}

static const char *command_text(const struct row *row, char *text, size_t size) {
    const struct bfc_waiter *waiter = job_waiter(row->job, row->index);
    char waiting[WAITER_TEXT], rank[24] = "", command[256];
    if (row->job->header.rank >= 0)
        snprintf(rank, sizeof rank, "rank %" PRId32 ": ", row->job->header.rank);
    snprintf(text, size, "%s%s%s%s", waiter_text(waiter, waiting, sizeof waiting),
             waiter ? ": " : "", rank,
             short_command(text_printable(row->job->header.command, command, sizeof command)));
    return text;
}

static void draw_row(int line, const struct row *row, bool selected) {
    const struct bfc_pool_stats *stats = &row->pool->stats;
    char a[TEXT_FIGURE], b[TEXT_FIGURE], c[TEXT_FIGURE], d[TEXT_FIGURE], pid[16], device[24],
        allocations[24], waits[24], fences[24], failures[24], command[512], text[1024];
    snprintf(pid, sizeof pid, "%" PRId32, row->job->header.pid);
    snprintf(device, sizeof device, "%" PRId64 "%s", row->pool->device,
             bfc_pool_is_host(row->pool) ? "h" : "");
    snprintf(allocations, sizeof allocations, "%.0f", row->track->allocations_rate);
    snprintf(waits, sizeof waits, "%.0f", row->track->waits_rate);
    snprintf(fences, sizeof fences, "%.0f", row->track->fences_rate);
    snprintf(failures, sizeof failures, "%" PRIu64, stats->out_of_memory);
    columns_text(pid, device, bfc_bytes_text(stats->in_use, a, sizeof a),
                 bfc_bytes_text(bfc_pool_cached(stats), b, sizeof b),
                 bfc_bytes_text(stats->reserved, c, sizeof c),
                 bfc_share_text(bfc_pool_hit_rate(stats), d, sizeof d), allocations, waits, fences,
                 failures, command_text(row, command, sizeof command), text, sizeof text);
    attron(selected ? A_REVERSE : stats->out_of_memory ? COLOR_PAIR(BAD) : A_NORMAL);
    mvprintw(line, 0, "%-*.*s", selected ? COLS : 0, COLS, text);
    attrset(A_NORMAL);
}

/* Returns the first line below the rows. */
static int draw_rows(int line, int most) {
    size_t first = top.selected >= (size_t)most ? top.selected - (size_t)most + 1 : 0;
    for (size_t i = first; i < top.row_count && i < first + (size_t)most; i++)
        draw_row(line++, &top.rows[i], i == top.selected);
    if (top.row_count == 0 && top.findings.refused_count)
        mvprintw(line++, 0, "no jobs with pools that can be read; `bfcstat` says of %zu why",
                 top.findings.refused_count);
    else if (top.row_count == 0)
        mvprintw(line++, 0, "no jobs with pools");
    return line;
}

static void draw_sparkline(int line, const struct track *track) {
    static const char *const levels[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char plain[] = "_.-=+*%#";
    bool utf8 = MB_CUR_MAX > 1;
    unsigned room = COLS > 20 ? (unsigned)COLS - 20 : 1;
    unsigned shown = track->looks < HISTORY ? track->looks : HISTORY;
    shown = shown < room ? shown : room;
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

/* Draws the whole device as a line: this pool's parts, other users, what the driver has left. For
 * host memory, the whole line is what may be spilled. */
static void draw_device(int line, const struct bfc_segment_pool *pool) {
    const struct bfc_pool_stats *stats = &pool->stats;
    double total = pool->device_total ? (double)pool->device_total : 1;
    double width = COLS > 20 ? COLS - 20 : 1;
    int use = (int)((double)stats->in_use / total * width + 0.5);
    int pending = (int)((double)(stats->pending + stats->deferred) / total * width + 0.5);
    int ready = (int)((double)stats->ready / total * width + 0.5);
    int left = (int)((double)pool->device_free / total * width + 0.5);
    bool host = bfc_pool_is_host(pool);
    /* The memory of others is known only if the job has asked the driver for its free memory. */
    int others = host || !pool->device_free_ns ? 0 : (int)width - use - pending - ready - left;
    char figure[TEXT_FIGURE];
    if (use < 0 || pending < 0 || ready < 0 || left < 0 || use + pending + ready > (int)width)
        return;
    mvprintw(line, 0, "%-6s %9s ", host ? "host" : "device",
             bfc_bytes_text(pool->device_total, figure, sizeof figure));
    put_cells(use, '#', USE);
    put_cells(pending, '~', PENDING);
    put_cells(ready, '.', READY);
    put_cells(others, 'x', PLAIN);
    put_cells((int)width - use - pending - ready - (others > 0 ? others : 0), ' ', DEVICE);
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

/* Merges several cells into one. The result is full, or without a page, only if all of the cells
 * are. */
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

/* Draws the pool's regions, and counts those for which there is no room. */
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
        mvprintw(line, 0, "%16s and %" PRIu64 " more regions", "", hidden);
}

static void draw_histograms(int line, const struct row *row) {
    uint64_t sizes[BFC_SIZE_BINS], most = 1;
    char a[TEXT_FIGURE], b[TEXT_FIGURE], c[TEXT_FIGURE], d[TEXT_FIGURE];
    const struct bfc_segment_pool *pool = row->pool;
    bfc_pool_sizes(pool, sizes);
    for (unsigned i = 0; i < BFC_SIZE_BINS; i++)
        most = sizes[i] > most ? sizes[i] : most;
    mvprintw(line++, 0, "to allocate: half within %s, 99 %% within %s; to free: %s, %s",
             text_duration(bfc_latency_quantile(pool->allocate_latency, 0.5), a, sizeof a),
             text_duration(bfc_latency_quantile(pool->allocate_latency, 0.99), b, sizeof b),
             text_duration(bfc_latency_quantile(pool->free_latency, 0.5), c, sizeof c),
             text_duration(bfc_latency_quantile(pool->free_latency, 0.99), d, sizeof d));
    for (unsigned i = 0; i < BFC_SIZE_BINS && line < LINES - 1; i++) {
        if (!sizes[i])
            continue;
        mvprintw(line++, 0, "%9s %13s ", bfc_bytes_text(UINT64_C(1) << i, a, sizeof a),
                 text_count(sizes[i], b, sizeof b));
        put_cells((int)((double)sizes[i] / (double)most * (COLS - 26)) + 1, '*', USE);
    }
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
        "0h: host memory in place of device 0's (BFC_SPILL)",
        "# in use   + partly in use   ~ pending   . ready   x others   blank: free on the device",
    };
    for (int i = 0; i < (int)(sizeof lines / sizeof lines[0]) && i + 3 < LINES - 1; i++)
        mvprintw(i + 3, 2, "%.*s", COLS - 2, lines[i]);
}

/* Draws a line that names the pool, with its fragmentation and its plan. */
static void draw_name(int line, const struct row *row) {
    char name[96], text[320], a[TEXT_FIGURE], b[TEXT_FIGURE], c[TEXT_FIGURE];
    const struct bfc_segment_pool *pool = row->pool;
    double fragmentation = bfc_pool_fragmentation(pool);
    int used =
        snprintf(text, sizeof text, "%" PRId32 ", device %" PRId64 ": %s%s", row->job->header.pid,
                 pool->device, bfc_pool_is_host(pool) ? "host memory in place of " : "",
                 text_printable(pool->device_name, name, sizeof name));
    if (fragmentation >= 0 && pool->stats.in_use && pool->stats.ready)
        snprintf(text + used, sizeof text - (size_t)used,
                 "; %s of ready cannot serve %s, largest free %s",
                 bfc_share_text(fragmentation, a, sizeof a),
                 bfc_bytes_text(pool->fit.request, b, sizeof b),
                 bfc_bytes_text(pool->stats.largest_free, c, sizeof c));
    used = (int)strlen(text);
    if (pool->plan.source)
        snprintf(text + used, sizeof text - (size_t)used, "; plan: followed %s, missed %s",
                 text_count(pool->plan.followed, a, sizeof a),
                 text_count(pool->plan.missed, b, sizeof b));
    put_rule(line, text);
}

static void draw_screen(void) {
    erase();
    draw_head();
    if (top.help) {
        draw_help();
    } else {
        int most = LINES > 14 ? (LINES - 8) / 2 : LINES - 4;
        int line = draw_rows(2, most > 0 ? most : 1);
        if (top.row_count && line + 4 < LINES) {
            const struct row *row = &top.rows[top.selected];
            draw_name(line++, row);
            draw_sparkline(line++, row->track);
            draw_device(line++, row->pool);
            if (top.lower == SHOW_MAP)
                draw_map(line, row);
            else
                draw_histograms(line, row);
        }
    }
    put_rule(LINES - 1,
             *top.message ? top.message : " ? help  tab map/histograms  s sort  t trim  q quit");
    refresh();
}

/* --- keys --- */

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

/* --- the command --- */

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

static void run_screen(int directory) {
    read_jobs(directory);
    while (!top.over) {
        draw_screen();
        double left = top.last_look + top.interval - bfc_now_seconds();
        timeout(top.paused ? -1 : left > 0 ? (int)(left * 1000) + 1 : 0);
        int key = getch();
        if (key != ERR)
            take_key(key, directory);
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
    return SHOWN;
}
