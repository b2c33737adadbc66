/*
 * Blocks of this process that lie in pages and were given a token: which pages they are, and the
 * descriptors by which other processes get them.
 *
 * The driver exports pages one by one, as descriptors, which are made when an importer asks for
 * them and closed once he has them. Until the block is freed, and until nobody is being answered
 * any more, its pages are pinned: what an importer is sent is always a page of the block, never one
 * that the pool has moved or given back meanwhile.
 *
 * Thread-safe; the lock is held across no call to other files but the pool's.
 */
#ifndef BFC_INTERPOSE_PAGE_EXPORTS_H
#define BFC_INTERPOSE_PAGE_EXPORTS_H

#include "interpose/arena/arena.h"
#include "interpose/features/share/page_message.h"

/* Fills in a row's region_size, offset, size and pages if the block lies in pages. False: it does
 * not. */
bool bfc_page_exports_describe(struct bfc_arena *arena, const struct bfc_block_info *block,
                               struct bfc_row *row);

/* The block has got this token: pins its pages. False: the host has no memory, or they are not
 * there. */
bool bfc_page_exports_add(const struct bfc_token *token, struct bfc_arena *arena,
                          const struct bfc_block_info *block);

/* The token is valid no more. Nothing happens for a token of a block without pages. */
void bfc_page_exports_end(const struct bfc_token *token);

/*
 * Answers a request: with `reply->count` descriptors in `files`, which are the caller's to close.
 * False, and there is no reply: nobody who has a valid token asks. To be called by the thread in
 * the background.
 */
bool bfc_page_exports_answer(const struct bfc_driver *driver,
                             const struct bfc_page_request *request, struct bfc_page_reply *reply,
                             int files[BFC_LOCAL_FILES]);

#endif
