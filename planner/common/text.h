/* A text in memory, which its holder must free. */
#ifndef BFC_PLAN_TEXT_H
#define BFC_PLAN_TEXT_H

#include <stddef.h>
#include <stdlib.h>

struct file_text {
    char *bytes; /* the text of a file has a zero byte after its end, at bytes[size] */
    size_t size;
};

static inline void file_free(struct file_text *text) {
    free(text->bytes);
    *text = (struct file_text){NULL, 0};
}

#endif
