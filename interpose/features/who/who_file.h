/* Writes the tables of sites, and of blocks, into the shared folder. */
#ifndef BFC_INTERPOSE_WHO_FILE_H
#define BFC_INTERPOSE_WHO_FILE_H

#include "interpose/features/who/blocks.h"
#include "interpose/features/who/sites.h"

/* `header`: with what is not in the tables; the rest is filled in here. `blocks`: NULL: none. */
void bfc_who_write_file(const struct bfc_sites *sites, struct bfc_who_header *header,
                        const struct bfc_blocks *blocks);

#endif
