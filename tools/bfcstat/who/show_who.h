/* Shows the answers of bfcstat who as text, JSON or collapsed stacks. docs/who.md describes the
 * keys. */
#ifndef BFC_TOOLS_WHO_SHOW_H
#define BFC_TOOLS_WHO_SHOW_H

#include <stdio.h>

#include "tools/bfcstat/who/sums.h"

/* Shows sums by library or by tag, and at most `most` sites (0: all), each with its stack. */
void show_who_text(const struct who_sums *sums, struct who_names *names, bool by_tag, size_t most,
                   FILE *stream);
void show_who_json(const struct who_sums *sums, struct who_names *names, FILE *stream);

/* Writes a line "outermost;...;innermost BYTES" for each site, from which other tools make flame
 * graphs. If the sums compare two moments, only the sites that have grown are written. */
void show_who_collapsed(const struct who_sums *sums, struct who_names *names, FILE *stream);

#endif
