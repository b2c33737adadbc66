/* The bytes of a file, or bytes for a file to be written. The owner frees them by file_free. */
#ifndef BFC_PLAN_TEXT_H
#define BFC_PLAN_TEXT_H

#include <stddef.h>
#include <stdlib.h>

struct file_text {
    char *bytes; /* if the bytes were read from a file, a zero byte follows them, at bytes[size] */
    size_t size;
};

static inline void file_free(struct file_text *text) {
    free(text->bytes);
    *text = (struct file_text){NULL, 0};
}

#endif
