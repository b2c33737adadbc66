/*
 * Draws a replay as SVG. Regions are grey bands from the call that reserves them to the call that
 * releases them, one above the other in the order of reservation; blocks are coloured rectangles in
 * them. All rectangles of one colour are one SVG path, so that viewers can show many of them.
 */
#include <stdlib.h>

#include "base/bytes.h"
#include "tools/replay/show_replay.h"

#define WIDTH 1200.0
#define HEIGHT 800.0
#define MARGIN 40.0
#define COLOURS 6

static const char *const colours[COLOURS] = {"#4e79a7", "#f28e2b", "#59a14f",
                                             "#e15759", "#76b7b2", "#b07aa1"};

struct box {
    uint32_t from, to; /* the calls (from 0) that begin and end the region or block */
    uint32_t region;
    uint64_t address, bytes;
    bool is_region;
};

struct picture {
    struct box *boxes;
    size_t count;
    /* For each allocation, and behind these for each region: the index in `boxes` of its rectangle,
     * plus 1, as long as it is not freed or given back; else 0. */
    uint32_t *open;
    /* For each region: what is subtracted from an address in it to get the height in the picture,
     * in bytes. */
    uint64_t *offset;
    uint64_t height; /* the height of the picture: bytes of all regions together */
    uint32_t calls, regions;
};

/* Whether an entry of the log is drawn. Failed allocations are not, and of several devices only
 * device 0 is, since the regions of each device have the numbers from 1. */
static bool is_shown(const struct log_entry *entry) {
    return entry->op != LOG_FAIL && entry->device == 0;
}

static bool shows_region(const struct log_entry *entry) {
    return entry->op == LOG_RESERVE && is_shown(entry);
}

static uint32_t *slot_of(const struct input *input, struct picture *picture,
                         const struct log_entry *entry) {
    bool is_block = entry->op == LOG_ALLOCATE || entry->op == LOG_FREE;
    uint32_t blocks = input->events.allocations_count;
    return &picture->open[is_block ? entry->allocation : blocks + entry->region];
}

static void add_entry(const struct input *input, struct picture *picture,
                      const struct log_entry *entry) {
    uint32_t *slot = slot_of(input, picture, entry);
    if (entry->op == LOG_RELEASE || entry->op == LOG_FREE) {
        if (*slot)
            picture->boxes[*slot - 1].to = entry->call;
        *slot = 0;
        return;
    }
    picture->boxes[picture->count++] = (struct box){.from = entry->call,
                                                    .to = picture->calls,
                                                    .region = entry->region,
                                                    .address = entry->address,
                                                    .bytes = entry->bytes,
                                                    .is_region = entry->op == LOG_RESERVE};
    *slot = (uint32_t)picture->count;
}

/* Places the regions one above the other, and adds a box for each region and each block. */
static void stack_blocks(const struct input *input, const struct log *log,
                         struct picture *picture) {
    uint64_t *starts = picture->offset;
    for (size_t i = 0; i < log->count; i++)
        if (shows_region(&log->list[i])) {
            starts[log->list[i].region] = log->list[i].address - picture->height;
            picture->height += log->list[i].bytes;
        }
    for (size_t i = 0; i < log->count; i++)
        if (is_shown(&log->list[i]))
            add_entry(input, picture, &log->list[i]);
}

static double x_of(const struct picture *picture, uint32_t call) {
    return MARGIN + (WIDTH - 2 * MARGIN) * call / (picture->calls ? picture->calls : 1);
}

static double height_of(const struct picture *picture, uint64_t bytes) {
    return (HEIGHT - 2 * MARGIN) * (double)bytes / (double)(picture->height ? picture->height : 1);
}

static void put_box(const struct picture *picture, const struct box *box, FILE *stream) {
    uint64_t offset = box->address - picture->offset[box->region];
    double left = x_of(picture, box->from), right = x_of(picture, box->to);
    double top = HEIGHT - MARGIN - height_of(picture, offset + box->bytes);
    fprintf(stream, "M%.2f %.2fH%.2fv%.2fH%.2fz", left, top, right, height_of(picture, box->bytes),
            left);
}

static void put_path(const struct picture *picture, unsigned colour, FILE *stream) {
    bool regions = colour == COLOURS;
    fprintf(stream, "<path fill=\"%s\" stroke=\"%s\" stroke-width=\"0.3\" d=\"",
            regions ? "#dddddd" : colours[colour], regions ? "#888888" : "#ffffff");
    for (size_t i = 0; i < picture->count; i++)
        if (picture->boxes[i].is_region ? regions : !regions && i % COLOURS == colour)
            put_box(picture, &picture->boxes[i], stream);
    fputs("\"/>\n", stream);
}

static void put_picture(const struct picture *picture, bool several, FILE *stream) {
    fprintf(stream,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%g\" height=\"%g\" "
            "font-family=\"sans-serif\" font-size=\"12\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
            WIDTH, HEIGHT);
    put_path(picture, COLOURS, stream);
    for (unsigned colour = 0; colour < COLOURS; colour++)
        put_path(picture, colour, stream);
    fprintf(
        stream,
        "<text x=\"%g\" y=\"%g\">calls 0 to %u%s</text>\n"
        "<text x=\"%g\" y=\"%g\">%u region%s, %.1f MiB, those given back included; grey: reserved, "
        "coloured: in use</text>\n</svg>\n",
        MARGIN, HEIGHT - MARGIN / 2, picture->calls, several ? ", of device 0 alone" : "", MARGIN,
        MARGIN / 2, picture->regions, bfc_plural(picture->regions),
        (double)picture->height / 1048576);
}

static bool make_room(const struct input *input, const struct log *log, struct picture *picture) {
    for (size_t i = 0; i < log->count; i++)
        if (shows_region(&log->list[i]) && log->list[i].region > picture->regions)
            picture->regions = log->list[i].region;
    size_t slots = (size_t)input->events.allocations_count + picture->regions + 1;
    picture->boxes = malloc((log->count + 1) * sizeof *picture->boxes);
    picture->open = calloc(slots, sizeof *picture->open);
    picture->offset = calloc((size_t)picture->regions + 1, sizeof *picture->offset);
    return picture->boxes && picture->open && picture->offset;
}

bool show_plot(const struct input *input, const struct log *log, const char *path,
               struct plan_error *error) {
    struct picture picture = {.calls = input->events.count};
    struct file_writer writer;
    bool good = make_room(input, log, &picture) || plan_fail_memory(error);
    good = good && file_open(&writer, path, error);
    if (good) {
        stack_blocks(input, log, &picture);
        put_picture(&picture, input->devices > 1, writer.stream);
        good = file_close(&writer, error);
    }
    free(picture.boxes);
    free(picture.open);
    free(picture.offset);
    return good;
}
