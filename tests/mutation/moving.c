/*
 * An allocation for which free memory lies in pieces only, some of them still in use by slow work:
 * it gets it all, but not before the work is done (BFC_BACKING=pages). Natively a free waits.
 */
#include "tests/conformance/gpu.h"

static const size_t piece = 50 * MIB, large = 175 * MIB;

static void look(CUstream slow, CUstream fast) {
    enum { PIECES = 4 };
    void *pieces[PIECES];
    for (int i = 0; i < PIECES; i++)
        pieces[i] = new_block(piece);
    slow_fill(slow, pieces[0], piece, 1, 50);
    slow_fill(slow, pieces[2], piece, 1, 50);
    for (int i = 0; i < PIECES; i++)
        MUST(release(pieces[i]));
    void *block = NULL;
    say("all of it", allocate(&block, large));
    fill(fast, block, large, 2);
    say("the slow work", (int)cuStreamSynchronize(slow));
    say("the fast work", (int)cuStreamSynchronize(fast));
    tell("the large block is intact", holds(block, large, 2));
    MUST(release(block));
}

/* A live block between two free ones keeps them apart. */
static void join_pieces(CUstream stream) {
    void *pieces[4], *block = NULL;
    for (int i = 0; i < 4; i++)
        pieces[i] = new_block(piece);
    fill(stream, pieces[1], piece, 7);
    MUST(release(pieces[0]));
    MUST(release(pieces[2]));
    say("two pieces in one", allocate(&block, 2 * piece));
    fill(stream, block, 2 * piece, 8);
    MUST(cuStreamSynchronize(stream));
    tell("the block is intact", holds(block, 2 * piece, 8));
    tell("its neighbour is intact", holds(pieces[1], piece, 7));
    MUST(release(block));
    MUST(release(pieces[1]));
    MUST(release(pieces[3]));
}

int main(void) {
    use_device(0);
    CUstream slow = new_stream(), fast = new_stream();
    join_pieces(fast);
    look(slow, fast);
    look(slow, fast);
    return 0;
}
