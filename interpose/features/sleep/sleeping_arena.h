/*
 * The pages of one arena that are, or are about to be, asleep. All functions are for the thread
 * that has the lock of turn.h. The functions that make driver calls enter the arena's context.
 */
#ifndef BFC_INTERPOSE_SLEEPING_ARENA_H
#define BFC_INTERPOSE_SLEEPING_ARENA_H

#include "interpose/features/sleep/copy_pages.h"
#include "interpose/features/sleep/sleep.h"
#include "pool/pages.h"

struct bfc_sleeping_page {
    bfc_addr start;
    uint64_t bytes;
    uint64_t at;   /* the offset of the page's contents in the store's file */
    bfc_page page; /* the driver's memory for the page; 0: none now */
    bool mapped;   /* whether `page` is mapped at its addresses */
};

struct bfc_sleeping_arena {
    struct bfc_arena *arena; /* the arena of these pages; a counted reference */
    struct bfc_sleeping_page *pages;
    uint32_t count, room;
    uint64_t bytes; /* the size of all pages in `pages` */
    bool asleep;    /* whether the memory of the pages went back to the device */
    struct bfc_page_copier copier;
    struct bfc_sleeping_arena *next;
};

/* Keeps the pool from making and moving pages, and lists the pages that can sleep; their contents
 * will be in the store from the offset `at` on. NULL: the host has no memory, or the driver refuses
 * what copies need; the pool's pages are as before. */
struct bfc_sleeping_arena *bfc_sleeping_arena_open(struct bfc_arena *arena, uint64_t at,
                                                   const char **why);

/* Gives back pages that a wake has made and has not handed over to the pool, lets the pool move
 * pages again, and frees `sleeping`. */
void bfc_sleeping_arena_close(struct bfc_sleeping_arena *sleeping);

/* Copies the contents of all pages into the store's file by bfc_copy_pages_out, until that returns
 * an error, which is returned. */
CUresult bfc_sleeping_arena_save(struct bfc_sleeping_arena *sleeping, int file,
                                 bool (*goes_on)(void), int *error);

/* Gives the pages back to the device, and returns their bytes. Asks `goes_on` before each page.
 * A page keeps its memory, and is removed from the list `pages`, if goes_on returns false or the
 * driver does not unmap the page. */
uint64_t bfc_sleeping_arena_release(struct bfc_sleeping_arena *sleeping, bool (*goes_on)(void));

/* Makes memory for all pages of the arena, or for none. False: `*error` is the driver's error. */
bool bfc_sleeping_arena_create(struct bfc_sleeping_arena *sleeping, bool is_first, CUresult *error);

/* Gives the memory that a wake has made for the pages back to the device. */
void bfc_sleeping_arena_give_back(struct bfc_sleeping_arena *sleeping);

/* Maps the pages that a wake has made at their old addresses, with access, and copies their
 * contents back unless `goes_on` returns false. The pool counts them as asleep until
 * bfc_sleeping_arena_hand_over. */
CUresult bfc_sleeping_arena_restore(struct bfc_sleeping_arena *sleeping, int file,
                                    bool (*goes_on)(void), int *error);

/* Makes restored pages the pool's own again. False: the context has ended, and the list `pages`
 * still has the pages. */
bool bfc_sleeping_arena_hand_over(struct bfc_sleeping_arena *sleeping);

/* Whether the arena's context is about to end or has ended, so that no more driver calls may be
 * begun in it. */
bool bfc_sleeping_arena_ends(const struct bfc_sleeping_arena *sleeping);

#endif
