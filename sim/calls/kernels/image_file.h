// Images in files.
#ifndef SIM_IMAGE_FILE_H
#define SIM_IMAGE_FILE_H

// A file's bytes and a NUL, to be freed; NULL: it cannot be read.
char *sim_image_file(const char *path);

#endif
