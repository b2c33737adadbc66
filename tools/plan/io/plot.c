#include "tools/plan/io/plot.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/bytes.h"
#include "planner/common/number.h"
#include "planner/common/watch.h"
#include "tools/plan/common/whole_file.h"

/* Lengths are in pixels. */
#define WIDTH 1400.0
#define HEIGHT 800.0
#define LEFT 110.0
#define RIGHT 170.0
#define TOP 50.0
#define BOTTOM 60.0
#define ARENA_GAP 24.0
/* rectangles are drawn at least this wide and high, so that they can be seen */
#define LEAST_SIDE 0.35
#define MOST_ARENAS 64 /* how many arenas (separate memories) are drawn at most */
#define TICKS 8        /* about how many marks an axis has */

struct canvas {
    const struct plot *plot;
    FILE *stream;
    uint64_t first; /* the time at the left end of the axis of time, in ticks */
    double span;    /* how many ticks (units of time) the axis of time shows */
    double scale;   /* how many pixels a byte is high */
    uint32_t arenas;
    double floor[MOST_ARENAS]; /* for each arena: where its address 0 is, in pixels from the top */
};

static const char *const fills[PLOT_COLOURS] = {"#4e79a7", "#f28e2b", "#59a14f"};
static const char *const fill_names[PLOT_COLOURS] = {"lives to the end", "crosses the period",
                                                     "short-lived"};

static double x_of(const struct canvas *canvas, uint64_t tick) {
    const double since = (double)(tick - canvas->first);
    return LEFT + since / canvas->span * (WIDTH - LEFT - RIGHT);
}

static double y_of(const struct canvas *canvas, uint32_t arena, uint64_t address) {
    return canvas->floor[arena] - (double)address * canvas->scale;
}

static uint64_t top_of(const struct plot_arena *arena) {
    return arena->peak > arena->bound ? arena->peak : arena->bound;
}

/* Finds the scales of both axes, and where each arena (separate memory) is drawn: one above the
 * other, all at the same scale. */
static void lay_out(struct canvas *canvas) {
    const struct plot *plot = canvas->plot;
    uint64_t last = 0;
    double bytes = 0, y = HEIGHT - BOTTOM;
    canvas->arenas = plot->arenas_count > MOST_ARENAS ? MOST_ARENAS : plot->arenas_count;
    canvas->first = plot->boxes_count > 0 ? UINT64_MAX : 0;
    for (uint32_t i = 0; i < plot->boxes_count; i++) {
        canvas->first = plot->boxes[i].birth < canvas->first ? plot->boxes[i].birth : canvas->first;
        last = plot->boxes[i].death > last ? plot->boxes[i].death : last;
    }
    canvas->span = last > canvas->first ? (double)(last - canvas->first) : 1;
    for (uint32_t a = 0; a < canvas->arenas; a++)
        bytes += (double)top_of(&plot->arenas[a]);
    const double room = HEIGHT - TOP - BOTTOM;
    const double gap = canvas->arenas * ARENA_GAP < room / 2 ? ARENA_GAP : room / 2 / MOST_ARENAS;
    canvas->scale = (room - gap * (canvas->arenas - 1)) / (bytes > 0 ? bytes : 1);
    for (uint32_t a = 0; a < canvas->arenas; a++) {
        canvas->floor[a] = y;
        y -= (double)top_of(&plot->arenas[a]) * canvas->scale + gap;
    }
}

static void draw_head(const struct canvas *canvas) {
    fprintf(canvas->stream,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
            "viewBox=\"0 0 %.0f %.0f\" font-family=\"sans-serif\" font-size=\"12\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
            WIDTH, HEIGHT, WIDTH, HEIGHT);
    fprintf(canvas->stream, "<text x=\"%.0f\" y=\"28\" font-size=\"16\">%u buffer%s</text>\n", LEFT,
            canvas->plot->boxes_count, bfc_plural(canvas->plot->boxes_count));
}

struct rectangle {
    double x, y, width, height;
};

static struct rectangle place_box(const struct canvas *canvas, const struct plot_box *box) {
    struct rectangle r = {x_of(canvas, box->birth), y_of(canvas, box->arena, box->offset), 0, 0};
    r.width = x_of(canvas, box->death) - r.x;
    r.height = (double)box->size * canvas->scale;
    r.width = r.width < LEAST_SIDE ? LEAST_SIDE : r.width;
    r.height = r.height < LEAST_SIDE ? LEAST_SIDE : r.height;
    r.y -= r.height;
    return r;
}

static bool is_shown(const struct canvas *canvas, const struct plot_box *box) {
    return box->size > 0 && box->arena < canvas->arenas;
}

static void draw_titled(const struct canvas *canvas) {
    char bytes[32], birth[PLAN_TICK_TEXT], death[PLAN_TICK_TEXT];
    for (uint32_t i = 0; i < canvas->plot->boxes_count; i++) {
        const struct plot_box *box = &canvas->plot->boxes[i];
        watch_add(PLOT_COLOURS);
        if (!is_shown(canvas, box))
            continue;
        const struct rectangle r = place_box(canvas, box);
        fprintf(canvas->stream,
                "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\" "
                "stroke=\"#ffffff\" stroke-width=\"0.3\"><title>row %u: %s at %" PRIu64
                ", [%s, %s)</title></rect>\n",
                r.x, r.y, r.width, r.height, fills[box->colour], box->row + 1,
                bfc_bytes_text(box->size, bytes, sizeof bytes), box->offset,
                plan_tick_print(box->birth, birth), plan_tick_print(box->death, death));
    }
}

static void draw_paths(const struct canvas *canvas) {
    for (int colour = 0; colour < PLOT_COLOURS; colour++) {
        fprintf(canvas->stream, "<path fill=\"%s\" stroke=\"#ffffff\" stroke-width=\"0.08\" d=\"",
                fills[colour]);
        for (uint32_t i = 0; i < canvas->plot->boxes_count; i++) {
            const struct plot_box *box = &canvas->plot->boxes[i];
            watch_add(1);
            if (!is_shown(canvas, box) || (int)box->colour != colour)
                continue;
            const struct rectangle r = place_box(canvas, box);
            fprintf(canvas->stream, "M%.2f %.2fh%.2fv%.2fh-%.2fz\n", r.x, r.y, r.width, r.height,
                    r.width);
        }
        fputs("\"/>\n", canvas->stream);
    }
}

static void draw_line(const struct canvas *canvas, uint32_t arena, uint64_t bytes, const char *name,
                      const char *colour, double shift) {
    char text[32];
    const double y = y_of(canvas, arena, bytes);
    fprintf(canvas->stream,
            "<line x1=\"%.0f\" x2=\"%.0f\" y1=\"%.2f\" y2=\"%.2f\" stroke=\"%s\" "
            "stroke-width=\"1.5\" stroke-dasharray=\"6 3\"/>\n"
            "<text x=\"%.0f\" y=\"%.2f\" fill=\"%s\">%s %s</text>\n",
            LEFT, WIDTH - RIGHT, y, y, colour, WIDTH - RIGHT + 6, y + shift, colour, name,
            bfc_bytes_text(bytes, text, sizeof text));
}

/* Returns a round distance between marks, so that an axis has about TICKS of them: 1, 2 or 5 times
 * a power of ten, or a power of two for bytes. It is computed by multiplications, because exp2,
 * log2 and pow would need glibc 2.29. */
static double step_of(double range, bool binary) {
    const double rough = range / TICKS;
    double power = 1;
    while (binary ? power < rough : power * 10 <= rough)
        power *= binary ? 2 : 10;
    if (binary)
        return power;
    const double times = rough / power;
    return power * (times <= 1 ? 1 : times <= 2 ? 2 : times <= 5 ? 5 : 10);
}

static void draw_time_axis(const struct canvas *canvas) {
    char text[PLAN_TICK_TEXT];
    const double step = step_of(canvas->span, false);
    for (double since = 0; since <= canvas->span; since += step) {
        const uint64_t tick = canvas->first + (uint64_t)since;
        const double x = x_of(canvas, tick);
        fprintf(canvas->stream,
                "<line x1=\"%.2f\" x2=\"%.2f\" y1=\"%.0f\" y2=\"%.0f\" stroke=\"#888888\"/>"
                "<text x=\"%.2f\" y=\"%.0f\" text-anchor=\"middle\">%s</text>\n",
                x, x, HEIGHT - BOTTOM, HEIGHT - BOTTOM + 5, x, HEIGHT - BOTTOM + 20,
                plan_tick_print(tick, text));
    }
    fprintf(canvas->stream, "<text x=\"%.0f\" y=\"%.0f\" text-anchor=\"middle\">time</text>\n",
            (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 14);
}

static void draw_address_axis(const struct canvas *canvas, uint32_t arena) {
    char text[32];
    const uint64_t top = top_of(&canvas->plot->arenas[arena]);
    const double step = step_of((double)top, true);
    fprintf(canvas->stream,
            "<line x1=\"%.0f\" x2=\"%.0f\" y1=\"%.2f\" y2=\"%.2f\" stroke=\"#888888\"/>"
            "<line x1=\"%.0f\" x2=\"%.0f\" y1=\"%.2f\" y2=\"%.2f\" stroke=\"#888888\"/>\n",
            LEFT, LEFT, canvas->floor[arena], y_of(canvas, arena, top), LEFT, WIDTH - RIGHT,
            canvas->floor[arena], canvas->floor[arena]);
    for (double at = 0; at <= (double)top; at += step) {
        const double y = y_of(canvas, arena, (uint64_t)at);
        fprintf(canvas->stream, "<text x=\"%.0f\" y=\"%.2f\" text-anchor=\"end\">%s</text>\n",
                LEFT - 6, y + 4, bfc_bytes_text((uint64_t)at, text, sizeof text));
        if ((double)top * canvas->scale < 30)
            break; /* the arena's picture is too low for more than one mark */
    }
}

static void draw_legend(const struct canvas *canvas) {
    double x = LEFT + 160;
    for (int colour = 0; colour < PLOT_COLOURS; colour++) {
        fprintf(canvas->stream,
                "<rect x=\"%.0f\" y=\"18\" width=\"12\" height=\"12\" fill=\"%s\"/>"
                "<text x=\"%.0f\" y=\"28\">%s</text>\n",
                x, fills[colour], x + 18, fill_names[colour]);
        x += 170;
    }
}

static void draw_plot(struct canvas *canvas) {
    watch_begin((uint64_t)PLOT_COLOURS * canvas->plot->boxes_count);
    lay_out(canvas);
    draw_head(canvas);
    draw_legend(canvas);
    if (canvas->plot->boxes_count <= PLOT_TITLED)
        draw_titled(canvas);
    else
        draw_paths(canvas);
    draw_time_axis(canvas);
    for (uint32_t a = 0; a < canvas->arenas; a++) {
        draw_address_axis(canvas, a);
        draw_line(canvas, a, canvas->plot->arenas[a].bound, "bound", "#1a1a1a", 14);
        draw_line(canvas, a, canvas->plot->arenas[a].peak, "peak", "#e15759", -2);
    }
    fputs("</svg>\n", canvas->stream);
}

bool plot_write(const struct plot *plot, const char *path, struct plan_error *error) {
    struct file_writer writer;
    if (!file_open(&writer, path, error))
        return false;
    struct canvas canvas = {.plot = plot, .stream = writer.stream};
    draw_plot(&canvas);
    return file_close(&writer, error);
}
