#include "planner/model/lifetimes.h"
#include "base/mix.h"

#include <stdio.h>
#include <stdlib.h>

void lifetimes_free(struct lifetimes *lifetimes) {
    file_free(&lifetimes->text);
    names_free(&lifetimes->ids);
    names_free(&lifetimes->spaces);
    free(lifetimes->rows);
    free(lifetimes->devices);
    *lifetimes = (struct lifetimes){0};
}

void lifetimes_seal(struct lifetimes *lifetimes) {
    uint64_t hash = bfc_mix_join(0, lifetimes->count);
    for (uint32_t i = 0; i < lifetimes->count; i++) {
        const struct lifetime *row = &lifetimes->rows[i];
        hash = bfc_mix_join(hash, row->birth);
        hash = bfc_mix_join(hash, row->death);
        hash = bfc_mix_join(hash, row->size);
        hash = bfc_mix_join(hash, row->pin);
        hash = bfc_mix_join(hash, (uint64_t)row->alias << 32 | row->group);
        hash = bfc_mix_join(hash, (uint64_t)row->space << 32 | row->stream);
        hash = bfc_mix_join(hash, row->unplanned);
    }
    lifetimes->hash = hash;
}

const char *lifetimes_row_text(const struct lifetimes *lifetimes, uint32_t row,
                               char text[ROW_TEXT]) {
    const uint32_t line = lifetimes->rows[row].line;
    if (line > 0)
        snprintf(text, ROW_TEXT, "row %u (line %u)", row + 1, line);
    else
        snprintf(text, ROW_TEXT, "allocation %u", row + 1);
    return text;
}
