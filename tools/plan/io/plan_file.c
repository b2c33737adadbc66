#include "tools/plan/io/plan_file.h"

#include "planner/common/watch.h"
#include "tools/plan/common/whole_file.h"

#define WRITE_BYTES ((size_t)1 << 20)
/* Roughly what percentage of the time of writing a plan goes to making its bytes in memory. */
#define IMAGE_PERCENT 70

/* Writes the bytes in pieces, and counts them as steps of the progress (watch.h). */
static void write_all(const struct file_text *text, FILE *stream) {
    for (size_t at = 0; at < text->size; at += WRITE_BYTES) {
        const size_t rest = text->size - at;
        const size_t now = rest < WRITE_BYTES ? rest : WRITE_BYTES;
        watch_add(fwrite(text->bytes + at, 1, now, stream));
    }
}

bool plan_write(const struct plan_content *content, const char *path, struct plan_error *error) {
    struct file_text text;
    struct file_writer writer;
    watch_begin(0);
    watch_part(IMAGE_PERCENT, IMAGE_STEPS * (uint64_t)content->lifetimes->visible);
    if (!plan_image(content, &text, error))
        return false;
    watch_part(100, text.size);
    bool good = file_open(&writer, path, error);
    if (good) {
        write_all(&text, writer.stream);
        good = file_close(&writer, error);
    }
    file_free(&text);
    return good;
}
