/*
 * Blocks come and go: with their first use a fill or a copy, freed with work under way, in streams,
 * while a kernel waits for the host, or many at once.
 */
#ifndef BFC_TESTS_STRESS_BLOCKS
#define BFC_TESTS_STRESS_BLOCKS

#include "tests/stress/programs/importer.h"
#include "tests/stress/programs/past.h"

static bool has_far;             /* there is another device to use */
static bool is_tight;            /* devices have little memory */
static bool crosses;             /* blocks are freed in streams of the other device, too */
static struct importer importer; /* of the first thread; without a process: none */

/* ---- what others have of a block ---- */

static void drop_graph(struct block *block) {
    if (block->graph)
        MUST(cuGraphExecDestroy(block->graph));
    block->graph = NULL;
}

static void close_import(unsigned slot) {
    MUST(ask_importer(&importer, &(struct request){.asked = CLOSE, .slot = slot}).code);
    importer.is_open[slot] = false;
}

/* Called before a block is freed or passed on: from then on the importer does not look at it. With
 * the stand-in it may still have it open, which a real driver leaves undefined; not where memory is
 * short, since what an importer has open is on the device, which the stand-in alone forgets. */
static void forget_import(const struct worker *worker, const struct block *block, bool is_freed) {
    for (unsigned i = 0; i < SLOTS && worker->index == 0; i++)
        if (importer.opened[i] == block->start) {
            if (importer.is_open[i] && (is_tight || !is_simulated()))
                close_import(i);
            importer.opened[i] = NULL;
            importer.is_freed[i] = is_freed;
        }
}

/* Called before most of a device is taken. */
static void close_imports(const struct worker *worker) {
    for (unsigned i = 0; i < SLOTS && worker->index == 0; i++)
        if (importer.is_open[i])
            close_import(i);
}

/* Takes a block that is freed or lost off the thread's list. */
static void remove_block(struct worker *worker, struct block *block) {
    *block = worker->blocks[--worker->count];
}

/* ---- blocks ---- */

/* A stream whose kernels reach the block. */
static int draw_user(struct worker *worker, const struct block *block) {
    bool other = has_far && worker->peers_on && below(worker, 3) == 0;
    return draw_stream(worker, block->side ^ other);
}

static int draw_any_stream(struct worker *worker) {
    return draw_stream(worker, has_far && below(worker, 2));
}

/* A block whose first use is in the stream of its own side. */
static void make_block_in(struct worker *worker, int stream) {
    if (worker->count == BLOCKS)
        return;
    struct block *block = &worker->blocks[worker->count++];
    *block = (struct block){.bytes = draw_size(worker), .stream = stream, .side = side_of(stream)};
    enter(worker, block->side);
    block->start = take(worker, block->bytes);
    write_all(worker, block, stream);
}

/* A block whose first use is a copy from another one, in a stream of either side. */
static void make_copy(struct worker *worker, struct block *from) {
    if (worker->count == BLOCKS)
        return;
    struct block *block = &worker->blocks[worker->count++];
    int stream = draw_any_stream(worker);
    *block =
        (struct block){.bytes = from->bytes, .stream = stream, .side = has_far && below(worker, 2)};
    enter(worker, block->side);
    block->start = take(worker, block->bytes);
    use(worker, from, stream);
    copy_words(worker, block, from, stream);
}

static void make_block(struct worker *worker) {
    struct block *from = any(worker);
    if (from && below(worker, 4) == 0 && has_scene("copy"))
        make_copy(worker, from);
    else
        make_block_in(worker, draw_stream(worker, has_far && below(worker, 4) == 0));
}

/* A free waits for work of the block's own device only. */
static void bring_home(struct worker *worker, struct block *block) {
    if (side_of(block->stream) == block->side)
        return;
    use(worker, block, draw_stream(worker, block->side));
    add_words(worker, block, block->stream);
}

/* Frees a block in a stream that comes after its last use. */
static void give_in_stream(struct worker *worker, struct block *block, int stream) {
    CUstream last = use(worker, block, stream);
    worker->operations++;
    forget_import(worker, block, true);
    MUST(release_async(block->start, last));
    remove_block(worker, block);
}

static void free_block(struct worker *worker, struct block *block) {
    if (below(worker, 4) == 0 && has_scene("async")) {
        bool stays = below(worker, 2) && (crosses || side_of(block->stream) == block->side);
        give_in_stream(worker, block, stays ? block->stream : draw_stream(worker, block->side));
        return;
    }
    bring_home(worker, block);
    if (has_far)
        enter(worker, (int)below(worker, 2)); /* frees go by pointer */
    forget_import(worker, block, true);
    give(worker, block->start, block->side);
    remove_block(worker, block);
}

/* A graph may outlive the memory that it works on. */
static void end_block(struct worker *worker, struct block *block) {
    struct block gone = *block;
    free_block(worker, block);
    drop_graph(&gone);
}

/*
 * A kernel waits for the host, which goes on in another stream meanwhile. Not where memory is
 * tight, nor where out of memory comes at random: before that an allocation gives memory back,
 * which waits.
 */
static void hold(struct worker *worker) {
    int held = (int)below(worker, CREATED);
    if (is_tight || are_refused || !has_scene("hold"))
        return;
    int other = (held + 1 + (int)below(worker, CREATED - 1)) % CREATED;
    close_gate(worker, held);
    for (unsigned i = below(worker, 4); i > 0; i--) {
        struct block *block = any(worker);
        if (block && block->stream == other && block->side == 0 && has_scene("async")) {
            drop_graph(block);
            give_in_stream(worker, block, other);
        } else {
            make_block_in(worker, other);
        }
    }
    open_gate(worker);
}

/* Any stream of the side, whatever the phase. */
static int draw_of_all(struct worker *worker, int side) {
    return side ? FAR : (int)below(worker, STREAMS);
}

/* Some blocks are freed with work under way, and others of their sizes allocated at once, for other
 * streams. */
static void renew(struct worker *worker) {
    struct block gone[BLOCKS];
    unsigned count = 0;
    for (unsigned i = below(worker, worker->count + 1); i > 0; i--) {
        struct block *block = any(worker);
        use(worker, block, draw_stream(worker, block->side));
        add_words(worker, block, block->stream);
        drop_graph(block);
        gone[count++] = *block;
        forget_import(worker, block, true);
        give(worker, block->start, block->side);
        remove_block(worker, block);
    }
    for (unsigned i = 0; i < count; i++) {
        struct block *block = &worker->blocks[worker->count++];
        *block = (struct block){.bytes = gone[i].bytes,
                                .stream = draw_of_all(worker, gone[i].side),
                                .side = gone[i].side};
        enter(worker, block->side);
        block->start = take(worker, block->bytes);
        write_all(worker, block, block->stream);
    }
}

#endif
