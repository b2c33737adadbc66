/*
 * What the scenes share. A scene is a function that puts the process into some surroundings, uses
 * device memory there, and reports what it got: run natively and preloaded (compare.py), the
 * reports and the ends of the process must be the same.
 *
 * The report is a file that is mapped from the start on, named by REPORT: it is reached without
 * descriptors, names, limits of files, and from children. Exit status 77: this machine cannot show
 * the scene.
 */
#ifndef BFC_TESTS_SURROUNDINGS_SCENE_H
#define BFC_TESTS_SURROUNDINGS_SCENE_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct scene {
    const char *name;
    void (*run)(void);
};

/* `PROGRAM list` prints the names; `PROGRAM NAME` runs one. For main. */
int run_scene(int argc, char **argv, const struct scene *scenes, size_t count);

void report(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void skip(const char *why);

/* Ends the process with a line in the report, unless `fine`. */
void must(bool fine, const char *what);

/* The first device's primary context, current. */
void begin(void);

/* Blocks allocated, written, freed and allocated again; reports a code that is not success. */
void use_memory(void);

/* Allocates until out of memory, which a pool explains on standard error; frees all. Reports the
 * last code. */
void run_out(void);

/* Begins, uses memory and runs out of it. */
void work(void);

/* Runs `scene` in a forked child, which must not have used CUDA yet, and reports how it ended. */
void in_child(const char *what, void (*scene)(void));
void report_end(const char *what, int status);

/* Runs `body` in a thread to its end. */
void in_thread(void (*body)(void));

#endif
