#include "tools/plan/io/plan_file.h"

#include "tools/plan/common/file.h"

bool plan_write(const struct plan_content *content, const char *path, struct plan_error *error) {
    struct file_text text;
    struct file_writer writer;
    if (!plan_image(content, &text, error))
        return false;
    bool good = file_open(&writer, path, error);
    if (good) {
        fwrite(text.bytes, 1, text.size, writer.stream);
        good = file_close(&writer, error);
    }
    file_free(&text);
    return good;
}
