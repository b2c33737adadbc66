/*
 * The exports of blocks that lie in pages: which pages each block has, and the thread that sends
 * other processes file descriptors of the pages (page_server.c).
 *
 * The driver exports each page as a descriptor, which is made when an importer asks for it and
 * closed once it was sent. The pages stay pinned until the block is freed, and after that as long
 * as a request for them is being answered. So an importer always gets a page of the block, never
 * one that the pool has moved or given back meanwhile.
 *
 * Thread-safe; nothing else is called while the lock of the exports is held.
 */
#ifndef BFC_INTERPOSE_PAGE_EXPORTS_H
#define BFC_INTERPOSE_PAGE_EXPORTS_H

#include "interpose/arena/arena.h"
#include "interpose/features/share/page_message.h"

/* Describes a block that lies in pages by the fields region_size, offset, size and pages of a row
 * of the token table. False: the block does not lie in pages. */
bool bfc_page_exports_describe(struct bfc_arena *arena, const struct bfc_block_info *block,
                               struct bfc_row *row);

/* Adds the export of a block and pins the block's pages. False: the block does not lie in pages, or
 * the host has no memory. */
bool bfc_page_exports_add(const struct bfc_token *token, struct bfc_arena *arena,
                          const struct bfc_block_info *block);

/* Ends the export of a token that is no longer valid, so that its pages are no longer pinned. Does
 * nothing for a block without pages. */
void bfc_page_exports_end(const struct bfc_token *token);

/* Answers an importer's request with `reply->count` file descriptors in `files`, which the caller
 * closes. False, without a reply: the request's check value was not made with the key of a valid
 * token, or the block was freed meanwhile, or the process or the context is ending. Called by the
 * thread of bfc_page_server_start. */
bool bfc_page_exports_answer(const struct bfc_driver *driver,
                             const struct bfc_page_request *request, struct bfc_page_reply *reply,
                             int files[BFC_LOCAL_FILES]);

/*
 * Starts the thread that sends pages to importers, unless this process has started it already. An
 * exporter calls this after it has published the block's row in the token table, and before the
 * program gets the block's token. False: the host has no memory, or allows no thread.
 *
 * While there is nothing to send, the thread sleeps on a futex in this process's token table, and
 * has no descriptor open. It connects to importers, which listen on sockets in the table's folder.
 * An importer that hangs delays other importers by some seconds, and the program not at all.
 */
bool bfc_page_server_start(void);

#endif
