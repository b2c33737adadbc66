#include "interpose/features/who/samples.h"

#include <stdbool.h>
#include <string.h>

#include "interpose/config/options.h"
#include "interpose/features/who/sites.h"

/* The most libraries whose bytes in use are added up; others are left out. The number is small
 * because the array of libraries lies on the program's stack, which may be small. */
enum { MOST_LIBRARIES = 32 };

static const char *path_of(const struct bfc_who_frame *frame) {
    return frame->object ? bfc_sites.texts + bfc_sites.objects[frame->object - 1].path : "";
}

/* Returns the path of the innermost library on the site's call stack that does not merely pass
 * calls on, as CUDA's runtime does; "" if there is none. */
static const char *library_of(const struct bfc_who_site *site) {
    const struct bfc_who_frame *frames = &bfc_sites.frames[site->first];
    uint32_t i = 0;
    while (i < site->native && bfc_who_hands_on(path_of(&frames[i])))
        i++;
    return i < site->native ? path_of(&frames[i]) : "";
}

static size_t add_site(struct bfc_who_library *libraries, size_t count,
                       const struct bfc_who_site *site) {
    const char *path = library_of(site);
    size_t i = 0;
    while (i < count && strcmp(libraries[i].path, path) != 0)
        i++;
    if (i == count && count < MOST_LIBRARIES)
        libraries[count++] = (struct bfc_who_library){.path = path};
    if (i < count)
        libraries[i].bytes += site->live_bytes;
    return count;
}

/* Returns the library with the most bytes in use, and sets these bytes to 0 in the array, so that
 * the next call finds another library. */
static struct bfc_who_library take_largest(struct bfc_who_library *libraries, size_t count) {
    struct bfc_who_library *largest = libraries;
    for (size_t i = 1; i < count; i++)
        if (libraries[i].bytes > largest->bytes)
            largest = &libraries[i];
    struct bfc_who_library taken = *largest;
    largest->bytes = 0;
    return taken;
}

/* Adds up the bytes in use of the call stacks by library, and returns the number of libraries.
 * `all` gets the sum over all call stacks, including those of libraries that are left out. */
static size_t add_up(struct bfc_who_library *libraries, double *all) {
    size_t count = 0;
    *all = 0;
    pool_lock(&bfc_who_lock);
    for (size_t i = 0; i < bfc_sites.site_count; i++)
        if (bfc_sites.sites[i].live_bytes > 0) {
            count = add_site(libraries, count, &bfc_sites.sites[i]);
            *all += bfc_sites.sites[i].live_bytes;
        }
    pool_unlock(&bfc_who_lock);
    return count;
}

size_t bfc_who_libraries(struct bfc_who_library *largest, size_t most) {
    struct bfc_who_library libraries[MOST_LIBRARIES];
    struct bfc_who_header header;
    size_t listed = 0;
    double all;
    if (!bfc_who_bring_up_to_date(&header))
        return 0;
    size_t count = add_up(libraries, &all);
    double scale = header.stacks == BFC_STACKS_SAMPLE && all > 0 ? (double)header.in_use / all : 1;
    for (size_t i = 0; i < count; i++)
        libraries[i].bytes *= scale;
    for (; listed < most && listed < count; listed++)
        largest[listed] = take_largest(libraries, count);
    return listed;
}
