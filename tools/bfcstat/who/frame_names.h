/*
 * What the frames of a job's stacks are called: functions and files, and the library that a site
 * belongs to. Names come from the files that the job has loaded, seen through its own root folder.
 * One thread.
 */
#ifndef BFC_TOOLS_WHO_NAMES_H
#define BFC_TOOLS_WHO_NAMES_H

#include "tools/job/job_who.h"
#include "tools/symbols/symbols.h"

enum { WHO_LINES = 80, WHO_PLACE = 512 }; /* of a stack at most; bytes of a place's text */

struct who_names {
    const struct bfc_who *who;
    int pid;                  /* 0: the job is not looked at, only its files */
    struct symbols **symbols; /* by object; NULL: not opened yet, or nothing there */
    bool *opened;
};

/* False: no memory. */
bool who_names_begin(struct who_names *names, const struct bfc_who *who, int pid);
void who_names_end(struct who_names *names);

/* A frame as people read it. Texts live as long as the names. */
struct who_line {
    const char *function; /* NULL: not known */
    const char *file;     /* Python: the source; else the object's path, or "" for none */
    uint64_t line;        /* Python; else 0 */
    uint64_t place;       /* native: from the function's begin, or the object's, or absolute */
};

/*
 * The site's stack, innermost first, at most `most`; returns how many. Where Python runs, native
 * frames end at the interpreter, whose own are of no interest.
 */
size_t who_stack(struct who_names *names, const struct bfc_who_site *site, struct who_line *lines,
                 size_t most);

/* What the thread said that it does; "" if nothing. */
const char *who_tag(const struct who_names *names, const struct bfc_who_site *site);

/* The library, or program, that called CUDA: its path; "" where it is not known. */
const char *who_library(struct who_names *names, const struct bfc_who_site *site);

/* Where in the program a site allocates: its innermost line of Python, else its innermost function
 * that does not only hand on. "": not known. Cut off at `size` bytes; returns `text`. */
char *who_place(struct who_names *names, const struct bfc_who_site *site, char *text, size_t size);

/* "function (file:line)" and its like; cut off at `size` bytes; returns `text`. */
char *who_line_text(const struct who_line *line, char *text, size_t size);

/* The same as flame graphs have it, without offsets and ';': "library`function". */
char *who_frame_text(const struct who_line *line, char *text, size_t size);

#endif
