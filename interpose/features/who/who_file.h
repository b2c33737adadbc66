/* Writes the tables of sites, and of blocks, into the shared folder. */
#ifndef BFC_INTERPOSE_WHO_FILE_H
#define BFC_INTERPOSE_WHO_FILE_H

#include "interpose/features/who/blocks.h"
#include "interpose/features/who/sites.h"

/* The caller sets the header's fields about samples and the executable; this sets the others.
 * `blocks` may be NULL. */
void bfc_who_write_file(const struct bfc_sites *sites, struct bfc_who_header *header,
                        const struct bfc_blocks *blocks);

#endif
