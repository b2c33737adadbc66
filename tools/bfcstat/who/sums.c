#include "tools/bfcstat/who/sums.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void add_sum(struct who_sum *to, const struct who_sum *sum) {
    to->bytes += sum->bytes;
    to->blocks += sum->blocks;
    to->variance += sum->variance;
    to->allocated_bytes += sum->allocated_bytes;
    to->allocated_blocks += sum->allocated_blocks;
    to->samples += sum->samples;
}

static struct who_sum sum_of(const struct bfc_who_site *site) {
    return (struct who_sum){.site = site,
                            .bytes = site->live_bytes,
                            .blocks = site->live_blocks,
                            .variance = site->live_variance,
                            .allocated_bytes = site->bytes,
                            .allocated_blocks = site->blocks,
                            .samples = site->live_samples};
}

/* Subtracts what the same call stack (site) held in the job's earlier answer, so that the sum
 * becomes a change. A job never changes the index of a site, so it is the same in both answers. */
static void subtract_site(struct who_sum *sum, const struct bfc_who_site *before) {
    sum->bytes -= before->live_bytes;
    sum->blocks -= before->live_blocks;
    /* The sum of both variances is more than the true variance of the change, because blocks that
     * were in use in both answers cancel out and add nothing to it. */
    sum->variance += before->live_variance;
    sum->allocated_bytes -= before->bytes;
    sum->allocated_blocks -= before->blocks;
    sum->samples = sum->site->samples - before->samples;
}

static void add_to(struct who_sum *groups, size_t *count, const char *name,
                   const struct who_sum *sum) {
    size_t i = 0;
    while (i < *count && strcmp(groups[i].name, name) != 0)
        i++;
    if (i == *count)
        groups[(*count)++] = (struct who_sum){.name = name};
    add_sum(&groups[i], sum);
}

/* Adds the memory of a call stack (site) to the sum of the place in the program where it allocates.
 * False: no memory for that sum's name. */
static bool add_to_places(struct who_sums *sums, struct who_names *names,
                          const struct who_sum *sum) {
    char text[WHO_PLACE];
    size_t known = sums->place_count;
    add_to(sums->places, &sums->place_count, who_place(names, sum->site, text, sizeof text), sum);
    if (sums->place_count == known)
        return true;
    sums->places[known].name = strdup(text);
    return sums->places[known].name != NULL;
}

static int by_bytes(const void *one, const void *other) {
    const struct who_sum *a = one, *b = other;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    return (a->allocated_bytes < b->allocated_bytes) - (a->allocated_bytes > b->allocated_bytes);
}

static bool is_nothing(const struct who_sum *sum) {
    return sum->samples == 0 && sum->bytes == 0 && sum->allocated_bytes == 0;
}

bool who_sum_up(struct who_sums *sums, struct who_names *names, const struct bfc_who *before) {
    const struct bfc_who *who = names->who;
    size_t count = who->header.sites;
    *sums = (struct who_sums){.libraries = calloc(count + 1, sizeof(struct who_sum)),
                              .tags = calloc(count + 1, sizeof(struct who_sum)),
                              .sites = calloc(count + 1, sizeof(struct who_sum)),
                              .places = calloc(count + 1, sizeof(struct who_sum))};
    if (!sums->libraries || !sums->tags || !sums->sites || !sums->places)
        return false;
    sums->in_use = (double)who->header.in_use;
    if (before)
        sums->in_use -= (double)before->header.in_use;
    if (before)
        sums->seconds = (double)(who->header.written_ns - before->header.written_ns) / 1e9;
    for (size_t i = 0; i < count; i++) {
        struct who_sum sum = sum_of(&who->sites[i]);
        if (before && i < before->header.sites)
            subtract_site(&sum, &before->sites[i]);
        if (is_nothing(&sum))
            continue;
        add_sum(&sums->all, &sum);
        add_to(sums->libraries, &sums->library_count, who_library(names, sum.site), &sum);
        add_to(sums->tags, &sums->tag_count, who_tag(names, sum.site), &sum);
        if (before && !add_to_places(sums, names, &sum))
            return false;
        sums->sites[sums->site_count++] = sum;
    }
    qsort(sums->sites, sums->site_count, sizeof *sums->sites, by_bytes);
    qsort(sums->libraries, sums->library_count, sizeof *sums->libraries, by_bytes);
    qsort(sums->tags, sums->tag_count, sizeof *sums->tags, by_bytes);
    qsort(sums->places, sums->place_count, sizeof *sums->places, by_bytes);
    return true;
}

void who_sums_free(struct who_sums *sums) {
    free(sums->libraries);
    free(sums->tags);
    free(sums->sites);
    for (size_t i = 0; sums->places && i < sums->place_count; i++)
        free((char *)sums->places[i].name);
    free(sums->places);
}

double who_error(const struct who_sum *sum) {
    return sqrt(sum->variance);
}
