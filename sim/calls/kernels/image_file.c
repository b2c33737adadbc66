// Images in files.
#include "sim/calls/kernels/image_file.h"

#include <stdio.h>
#include <stdlib.h>

char *sim_image_file(const char *path) {
    FILE *file = path != NULL ? fopen(path, "re") : NULL;
    char *text = NULL;
    size_t size = 0, room = 0;
    if (file == NULL) {
        return NULL;
    }
    do {
        room = room == 0 ? 65536 : room * 2;
        char *grown = realloc(text, room);
        if (grown == NULL) {
            break;
        }
        text = grown;
        size += fread(text + size, 1, room - 1 - size, file);
        text[size] = '\0';
    } while (size == room - 1);
    fclose(file);
    return text;
}
