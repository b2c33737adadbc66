/* Shows what bfcstat who found out as text, as JSON, or as collapsed stacks for flame graphs.
 * docs/who.md describes the keys of the JSON. */
#ifndef BFC_TOOLS_WHO_SHOW_H
#define BFC_TOOLS_WHO_SHOW_H

#include <stdio.h>

#include "tools/bfcstat/who/sums.h"

/* Shows how much memory is held by library, or by tag if `by_tag` is set, and then by site: at most
 * `most` sites (0: all), each with its call stack. */
void show_who_text(const struct who_sums *sums, struct who_names *names, bool by_tag, size_t most,
                   FILE *stream);
void show_who_json(const struct who_sums *sums, struct who_names *names, FILE *stream);

/* Writes a line "outermost;...;innermost BYTES" for each site, from which other tools make flame
 * graphs. If the sums compare two answers of the job, only the sites that have grown are
 * written. */
void show_who_collapsed(const struct who_sums *sums, struct who_names *names, FILE *stream);

#endif
