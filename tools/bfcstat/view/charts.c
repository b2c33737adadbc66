/* bfcstat's text charts of one job: the map of its regions, histograms of sizes, latencies, and the
 * last events other than allocations and frees. */
#include "tools/bfcstat/view/view.h"

#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "tools/text/print_text.h"

#define CHART_WIDTH 64
/* how many columns the terminal needs for a map in which each character stands for two cells */
#define WIDE_MAP 92u
#define ROWS_SHOWN 16u
#define LANDMARKS_SHOWN 12u

/* Returns the character by which a chart shows some cells of a region's map: # all in use, + partly
 * in use, ~ pending (freed, but the device may still use it), . free, - no memory behind the
 * addresses. Cells without memory are ignored if any of the cells has memory. */
static char cell_sign(const uint8_t *cells, unsigned count) {
    unsigned backed = 0, full = 0, used = 0, pending = 0;
    for (unsigned i = 0; i < count; i++) {
        if (cells[i] == BFC_MAP_BARE)
            continue;
        backed++;
        full += cells[i] >> 4 == 15;
        used += cells[i] >> 4;
        pending += cells[i] & 15;
    }
    if (!backed)
        return '-';
    return full == backed ? '#' : used ? '+' : pending ? '~' : '.';
}

static void show_row(const struct bfc_map_row *row, unsigned cells_each, FILE *stream) {
    char size[TEXT_FIGURE];
    unsigned cells = bfc_map_row_cells(row);
    fprintf(stream, "  %#14" PRIx64 " %9s  ", row->start,
            bfc_bytes_text(row->size, size, sizeof size));
    for (unsigned i = 0; i < cells; i += cells_each)
        putc(cell_sign(row->cells + i, cells - i < cells_each ? cells - i : cells_each), stream);
    putc('\n', stream);
}

static bool has_bare_cells(const struct bfc_map *map) {
    for (uint64_t i = 0; i < map->rows; i++)
        if (memchr(map->row[i].cells, (int)BFC_MAP_BARE, BFC_MAP_CELLS))
            return true;
    return false;
}

static void show_map(const struct bfc_job *job, FILE *stream) {
    uint64_t rows = job->map.rows, shown = rows < ROWS_SHOWN ? rows : ROWS_SHOWN;
    bool narrow = text_width(stream, WIDE_MAP) < WIDE_MAP;
    if (rows == 0)
        return;
    fprintf(stream, "\nmap (# in use, + partly, ~ pending, . free%s)\n",
            has_bare_cells(&job->map) ? ", - no page" : "");
    for (uint64_t i = 0; i < shown; i++)
        show_row(&job->map.row[i], narrow ? 3 : 2, stream);
    uint64_t hidden = rows - shown + job->map.left_out;
    if (hidden)
        fprintf(stream, "  and %" PRIu64 " more region%s\n", hidden, bfc_plural(hidden));
}

static void show_bar(const char *label, uint64_t count, uint64_t most, FILE *stream) {
    char figure[TEXT_FIGURE];
    int length = (int)((double)count / (double)most * CHART_WIDTH / 2 + 0.999);
    fprintf(stream, "  %10s %13s ", label, text_count(count, figure, sizeof figure));
    while (length-- > 0)
        putc('*', stream);
    putc('\n', stream);
}

static void show_sizes(const struct bfc_segment_pool *pool, FILE *stream) {
    uint64_t sizes[BFC_SIZE_BINS], most = 0;
    char figure[TEXT_FIGURE];
    bfc_pool_sizes(pool, sizes);
    for (unsigned i = 0; i < BFC_SIZE_BINS; i++)
        most = sizes[i] > most ? sizes[i] : most;
    if (most == 0)
        return;
    fprintf(stream, "\nrequested sizes on device %" PRId64 " (up to)\n", pool->device);
    for (unsigned i = 0; i < BFC_SIZE_BINS; i++)
        if (sizes[i])
            show_bar(bfc_bytes_text(UINT64_C(1) << i, figure, sizeof figure), sizes[i], most,
                     stream);
}

static void show_latency(const char *name, const uint64_t *bins, FILE *stream) {
    char a[TEXT_FIGURE], b[TEXT_FIGURE], c[TEXT_FIGURE];
    if (bfc_latency_quantile(bins, 1) == 0)
        return;
    fprintf(stream, "  %-15s half within %s, 99 %% within %s, all within %s\n", name,
            text_duration(bfc_latency_quantile(bins, 0.5), a, sizeof a),
            text_duration(bfc_latency_quantile(bins, 0.99), b, sizeof b),
            text_duration(bfc_latency_quantile(bins, 1), c, sizeof c));
}

/* Whether events of this kind have a duration in nanoseconds in the field `address`. */
static bool is_timed(enum bfc_event_kind kind) {
    return kind == BFC_EVENT_SAVED_CONTEXTS || kind == BFC_EVENT_SAVED_JOBS ||
           kind == BFC_EVENT_WAITED || kind == BFC_EVENT_SPILLED || kind == BFC_EVENT_SAVED_SLEEP ||
           kind == BFC_EVENT_ASLEEP || kind == BFC_EVENT_AWAKE;
}

static void show_landmark(const struct bfc_event *event, FILE *stream) {
    char age[TEXT_FIGURE], bytes[TEXT_FIGURE], took[TEXT_FIGURE];
    enum bfc_event_kind kind = bfc_event_kind_of(event->what);
    uint64_t us = bfc_event_us(event->what);
    fprintf(stream, "  %12s  %-14s",
            text_duration(us < UINT64_MAX / 1000 ? us * 1000 : us, age, sizeof age),
            bfc_event_kind_name(kind));
    if (event->bytes || kind == BFC_EVENT_TRIM)
        fprintf(stream, " %9s", bfc_bytes_text(event->bytes, bytes, sizeof bytes));
    if (is_timed(kind))
        fprintf(stream, "  after %s", text_duration(event->address, took, sizeof took));
    else if (event->address && kind != BFC_EVENT_TRIM)
        fprintf(stream, "  at %#" PRIx64, event->address);
    putc('\n', stream);
}

static void show_landmarks(const struct bfc_job *job, FILE *stream) {
    size_t count = job->landmark_count;
    size_t first = count > LANDMARKS_SHOWN ? count - LANDMARKS_SHOWN : 0;
    if (count == 0)
        return;
    fputs("\nlast events other than allocations and frees (time since the first allocation)\n",
          stream);
    for (size_t i = first; i < count; i++)
        show_landmark(&job->landmarks[i], stream);
}

void show_charts_text(const struct bfc_job *job, FILE *stream) {
    show_map(job, stream);
    for (unsigned i = 0; i < BFC_SEGMENT_POOLS; i++) {
        const struct bfc_segment_pool *pool = &job->pools[i];
        if (pool->state != BFC_POOL_ACTIVE)
            continue;
        show_sizes(pool, stream);
        show_latency("to allocate", pool->allocate_latency, stream);
        show_latency("to free", pool->free_latency, stream);
    }
    show_landmarks(job, stream);
}
