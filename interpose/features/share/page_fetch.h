/* Gets the descriptors of pages that another process exports, from that process (page_server.h).
 * The calling thread waits for it, but only for some seconds. Nothing is left in the shared folder;
 * the socket of an importer that was killed is removed by the exporter. */
#ifndef BFC_INTERPOSE_PAGE_FETCH_H
#define BFC_INTERPOSE_PAGE_FETCH_H

#include "interpose/features/share/page_message.h"

struct bfc_page_fetch {
    struct bfc_token token;
    struct bfc_local exporter;
    uint64_t next; /* index of the next page to fetch */
};

enum bfc_fetch_answer {
    BFC_FETCH_DONE,
    BFC_FETCH_SILENT,  /* the exporter has ended, or does not answer */
    BFC_FETCH_STALE,   /* the exporter has freed the block */
    BFC_FETCH_REFUSED, /* the exporter's driver has not exported the pages */
    BFC_FETCH_FAILED,  /* no socket or descriptor can be had in this process: errno says why */
};

/* Waits until the exporter has connected. */
enum bfc_fetch_answer bfc_page_fetch_begin(struct bfc_page_fetch *fetch,
                                           const struct bfc_token *token);

/* Fetches the next pages: `reply->count` descriptors in `files`, which the caller closes. */
enum bfc_fetch_answer bfc_page_fetch_next(struct bfc_page_fetch *fetch,
                                          struct bfc_page_reply *reply, int files[BFC_LOCAL_FILES]);

void bfc_page_fetch_end(struct bfc_page_fetch *fetch);

#endif
