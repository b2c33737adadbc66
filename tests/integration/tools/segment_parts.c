/* Prints the lines of docs/internals/segment.md that hold sizes, from the header, for the lint test
 * `segment`. */
#include <stdio.h>

#include "layout/segment.h"
#include "tools/text/print_text.h"

static const char *number(uint64_t value) {
    static char text[8][TEXT_FIGURE]; /* as many as one call of printf takes, and more */
    static unsigned next;
    next = (next + 1) % 8;
    return text_count(value, text[next], sizeof text[next]);
}

static void print_parts(void) {
    const uint64_t head = sizeof(struct bfc_map) - BFC_MAP_ROWS * sizeof(struct bfc_map_row);
    printf("| 0 | header, %s bytes |\n", number(sizeof(struct bfc_segment_header)));
    printf("| %s | %u sections, one a pool (a CUDA context), %s bytes each |\n",
           number(BFC_SEGMENT_POOLS_OFFSET), BFC_SEGMENT_POOLS,
           number(sizeof(struct bfc_segment_pool)));
    printf("| %s | map: a head of %s bytes and %u rows of %s bytes |\n",
           number(BFC_SEGMENT_MAP_OFFSET), number(head), BFC_MAP_ROWS,
           number(sizeof(struct bfc_map_row)));
    printf("| %s | landmarks: %s events of %s bytes |\n", number(BFC_SEGMENT_LANDMARKS_OFFSET),
           number(BFC_LANDMARKS), number(sizeof(struct bfc_event)));
    printf("| %s | events: %s of %s bytes |\n", number(BFC_SEGMENT_EVENTS_OFFSET),
           number(BFC_EVENTS), number(sizeof(struct bfc_event)));
}

int main(void) {
    printf("# The segment, layout version %u\n", BFC_SEGMENT_VERSION);
    printf("The file has %s bytes,\n", number(BFC_SEGMENT_SIZE));
    print_parts();
    return 0;
}
