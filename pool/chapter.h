/*
 * Chapters: runs of neighbouring blocks, and the ordered index over them.
 *
 * Each region's chain of blocks is cut into chapters of at most CHAPTER_MOST blocks; a treap over
 * the chapters by address (R. Seidel, C. Aragon, "Randomized search trees", 1996) finds the chapter
 * that an address lies in, and a short walk finds the block: O(log blocks) for interior pointers,
 * while a split or a merge of blocks only counts, and touches the tree once in many times. A
 * chapter costs 20 bytes, and has some 40 blocks.
 *
 * Invariants: the blocks of a chapter are neighbours in one region; `first` is the lowest of them;
 * 1 <= count <= CHAPTER_MOST; each block names its chapter.
 */
#ifndef BFC_POOL_CHAPTER_H
#define BFC_POOL_CHAPTER_H

#include "pool/block.h"
#include "pool/host.h"

#define CHAPTER_MOST 64
/* A chapter that falls below this joins the one before it, if both together have room to spare. */
#define CHAPTER_FEW 16
#define CHAPTER_JOINED_MOST 48

typedef uint32_t region_index;

struct chapter {
    block_index first;
    uint32_t count;
    region_index region;
    chapter_index lower, higher; /* in the tree; of a vacant one, lower lists the vacant ones */
};

struct chapters {
    struct chapter *all; /* index 0 is none */
    uint32_t high;       /* all indices in use are below it */
    chapter_index vacant;
    chapter_index root;
    struct host_array memory;
};

bool chapters_open(struct chapters *chapters, uint64_t most);
void chapters_close(struct chapters *chapters);

/* Makes sure that the next chapters_add succeeds. */
bool chapters_make_room(struct chapters *chapters);

/* Adds a chapter whose first block is `first`; room was made before. */
chapter_index chapters_add(struct chapters *chapters, const struct block *blocks, block_index first,
                           uint32_t count, region_index region);

/* Takes out a chapter whose first block, or where it was, still has its start. */
void chapters_remove(struct chapters *chapters, const struct block *blocks, chapter_index chapter);

/* The last chapter that starts at or below `address`, or 0. */
chapter_index chapters_find(const struct chapters *chapters, const struct block *blocks,
                            bfc_addr address);

/* Calls `visit` for each chapter in address order, until it returns false. */
bool chapters_visit(const struct chapters *chapters,
                    bool (*visit)(void *context, const struct chapter *chapter), void *context);

#endif
