/*
 * A random program, drawn from a seed: threads with streams and contexts of their own, which
 * allocate, fill, add, copy, capture, pass blocks to each other and free them with work under way.
 * Many have two sides, the thread's usual context and one on another device: blocks of one side are
 * used from the other's stream (with peer access on, also by kernels), and contexts are lost with
 * blocks in them, by calls that everybody sees and by others. Captures stay open, going on or
 * invalidated, while all that goes on; graphs stay, are parts of others and have memory of their
 * own; kernels wait for the host; now and then one context takes most of the device, and then
 * another library does. Calls are made on stacks that cannot be walked. Some programs have a thread
 * beside that asks after memory, some another process that opens the first thread's blocks, and
 * ends before or after it. In phases all work goes to one stream, or to what counts as one, in
 * others to many: created ones, blocking or not, the legacy one, the threads' own. It prints one
 * digest a thread of all the bytes that it read, and how many operations it made: allocations,
 * frees and pieces of work.
 *
 * What a seed computes does not depend on timing: a block is used in the order of the program's
 * text, since work in another stream first waits for the block's last use; nothing is read that was
 * not written; threads pass blocks, switch peer access and lose contexts only at barriers; a block
 * is freed only once its last use is work of its own device, which is what a free waits for, or in
 * the stream that used it last. So two runs of a seed print the same, unless a block was handed out
 * while work could still touch it. Nor does it depend on refusals (RANDOM_REFUSED=1, to be set with
 * SIM_FAIL=random): what was refused is asked for again.
 *
 * usage: random_program SEED [STEPS [small]]
 * RANDOM_WITHOUT=copy,plain,hold,open,most,async,barrier,stacks,unseen,monitor,import,graph,past,context
 * leaves scenes out; own: that one of several contexts takes most of a device.
 */
#include "tests/stress/programs/captures.h"
#include "tests/stress/programs/monitor.h"

enum { MOST_THREADS = 4 };

static uint64_t seed;
static unsigned steps = 240, round_steps = 40, thread_count;
static bool share;        /* threads have one context, and pass blocks */
static bool has_peers;    /* and the two can reach each other's memory */
static bool is_watched;   /* by a thread beside */
static bool has_importer; /* thread 0 */
static pthread_barrier_t barrier;
static struct worker workers[MOST_THREADS];
static struct block mailbox[MOST_THREADS];

/* ---- another library, another context, another process ---- */

static int own_device(const struct worker *worker) {
    return share ? 0 : (int)(worker->index % 2) % device_count();
}

/* Another library's memory takes part. */
static void visit_library(struct worker *worker, struct block *block) {
    if (!has_scene("past") || side_of(block->stream) != block->side)
        return;
    CUstream stream = use(worker, block, block->stream);
    enum past_kind kind = (enum past_kind)below(worker, PAST_KINDS);
    struct past past = take_past(kind, block->bytes, stream);
    work_elsewhere(worker, block, pointer_to(past.start));
    give_past(&past, stream);
}

/* A context comes, copies the block and goes. Alone, since others would get its addresses. */
static void visit_context(struct worker *worker, struct block *block) {
    CUcontext visited;
    char *bytes = worker->bytes;
    if (thread_count > 1 || is_tight || !has_scene("context"))
        return;
    begin_calm();
    finish_stream(worker, block->stream);
    enter(worker, block->side);
    MUST(CREATE_CONTEXT(&visited, block->side ? 1 - own_device(worker) : own_device(worker)));
    struct block copy = {.start = take(worker, block->bytes), .bytes = block->bytes};
    MUST(cuMemcpyPeerAsync(address(copy.start), visited, address(block->start),
                           worker->sides[block->side].context, copy.bytes, NULL));
    MUST(cuMemcpyDtoH(bytes, address(copy.start), copy.bytes));
    worker->operations += 2;
    digest_bytes(worker, bytes, copy.bytes);
    MUST(release(copy.start));
    MUST(cuCtxDestroy(visited));
    end_calm();
}

static void import_block(struct worker *worker, struct block *block, unsigned slot) {
    struct request request = {.asked = OPEN, .slot = slot, .bytes = block->bytes};
    finish_stream(worker, block->stream);
    enter(worker, block->side);
    MUST(cuIpcGetMemHandle(&request.handle, address(block->start)));
    MUST(ask_importer(&importer, &request).code);
    importer.opened[slot] = block->start;
    importer.is_open[slot] = true;
    importer.is_freed[slot] = false;
    importer.handles[slot] = request.handle;
}

/* What an importer sees of a block, and what it does to it, before anything else is done to it. */
static void use_import(struct worker *worker, struct block *block, unsigned slot) {
    struct request request = {.slot = slot, .value = below(worker, UINT32_MAX)};
    request.asked = below(worker, 2) ? ADD_TO : READ;
    finish_stream(worker, block->stream);
    worker->operations++;
    digest(worker, ask_importer(&importer, &request).digest);
}

static void renew_importer(struct worker *worker) {
    end_importer(&importer, below(worker, 2));
    start_importer(&importer);
}

static struct block *block_at(struct worker *worker, const void *start) {
    for (unsigned i = 0; start && i < worker->count; i++)
        if (worker->blocks[i].start == start)
            return &worker->blocks[i];
    return NULL;
}

/* Opens what nobody can see any more: that fails. A real driver leaves it undefined. */
static void import_freed(struct worker *worker, unsigned slot) {
    struct request request = {.asked = OPEN, .slot = slot, .handle = importer.handles[slot]};
    if (!importer.is_freed[slot] || !is_simulated())
        return;
    finish_work(worker); /* it may have been freed in a stream */
    ANSWERS(CUDA_ERROR_INVALID_HANDLE, ask_importer(&importer, &request).code);
}

static void change_import(struct worker *worker, struct block *block) {
    unsigned slot = below(worker, SLOTS), kind = below(worker, 16);
    if (worker->index || !has_importer || block->side != 0)
        return;
    struct block *shared = block_at(worker, importer.opened[slot]);
    if (kind == 0)
        renew_importer(worker);
    else if (!importer.is_open[slot])
        import_block(worker, block, slot);
    else if (kind < 4)
        close_import(slot);
    else if (shared)
        use_import(worker, shared, slot);
    else if (kind < 8)
        close_import(slot), import_freed(worker, slot);
}

/* ---- streams and contexts ---- */

/* The contexts of the sides in `mask`. */
static void open_contexts(struct worker *worker, unsigned mask) {
    if (mask & 2) {
        use_device(1 - own_device(worker));
        MUST(cuCtxGetCurrent(&worker->sides[1].context));
        if (share)
            watch(1, worker->sides[1].context);
    }
    if (!(mask & 1))
        return;
    use_device(0);
    if (!share)
        MUST(CREATE_CONTEXT(&worker->own, own_device(worker)));
    MUST(cuCtxGetCurrent(&worker->sides[0].context));
    watch(share ? 0 : 2 + worker->index, worker->sides[0].context);
}

static void open_worker(struct worker *worker) {
    unsigned kind = below(worker, 3);
    worker->relaxed = kind == 0 || (kind == 1 && !has_global);
    set_mode(worker->relaxed ? CU_STREAM_CAPTURE_MODE_RELAXED
             : has_global    ? CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
                             : CU_STREAM_CAPTURE_MODE_GLOBAL);
    worker->bytes = malloc(4 * (size_t)MOST_WORDS);
    open_hostile_stack(&worker->stack);
    open_contexts(worker, has_far ? 3 : 1);
    for (int side = 0; side <= has_far; side++)
        open_side(worker, side);
}

/* A stream may be destroyed with work under way; another one takes its place. */
static void change_stream(struct worker *worker) {
    int stream = draw_any_stream(worker), side = side_of(stream);
    if (stream == LEGACY || stream == OWN)
        return;
    enter(worker, side);
    CUevent event = worker->sides[side].event;
    CUstream fresh = fresh_stream(worker, stream);
    MUST(cuEventRecord(event, worker->streams[stream]));
    MUST(cuStreamWaitEvent(fresh, event, 0));
    MUST(cuStreamDestroy(worker->streams[stream]));
    worker->streams[stream] = fresh;
}

static void switch_peers(struct worker *worker, bool on) {
    for (int side = 0; side < 2; side++) {
        CUcontext other = worker->sides[1 - side].context;
        enter(worker, side);
        if (on)
            MUST(cuCtxEnablePeerAccess(other, 0));
        else
            MUST(cuCtxDisablePeerAccess(other));
    }
}

/* One thread switches for all that have the same contexts, while nothing is under way. */
static void change_peers(struct worker *worker) {
    finish_work(worker);
    pthread_barrier_wait(&barrier);
    if (!share || worker->index == 0)
        switch_peers(worker, !worker->peers_on);
    worker->peers_on = !worker->peers_on;
    pthread_barrier_wait(&barrier);
}

/* Frees what went with its context: that fails. Where to others last used blocks is over, too. */
static void free_lost(struct worker *worker, unsigned mask) {
    for (unsigned i = worker->count; i-- > 0;) {
        struct block *block = &worker->blocks[i];
        block->stream = block->side ? FAR : 0;
        if (!(mask >> block->side & 1))
            continue;
        ANSWERS(CUDA_ERROR_INVALID_VALUE, release(block->start));
        remove_block(worker, block);
    }
}

/* Ends a primary context as a runtime may, which calls the driver past its names. */
static bool end_unseen(int device) {
    CUresult (*release_unseen)(CUdevice);
    void (*(*private_call)(const char *))(void) = NULL;
    unsigned flags;
    int is_active = 1;
    *(void **)&private_call = dlsym(RTLD_DEFAULT, "sim_private_call");
    if (!private_call)
        return false;
    release_unseen = (CUresult(*)(CUdevice))private_call("cuDevicePrimaryCtxRelease");
    while (is_active) {
        MUST(release_unseen(device));
        MUST(cuDevicePrimaryCtxGetState(device, &flags, &is_active));
    }
    return true;
}

static void end_primary(int device, bool is_unseen) {
    watch((unsigned)device, NULL);
    if (!is_unseen || !end_unseen(device))
        MUST(cuDevicePrimaryCtxReset(device));
}

/* PyCUDA still ends its contexts by this. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static CUresult detach(CUcontext context) {
    return cuCtxDetach(context);
}
#pragma GCC diagnostic pop

static void end_own(struct worker *worker, bool is_unseen) {
    watch(2 + worker->index, NULL);
    enter(worker, 0);
    MUST(is_unseen ? detach(worker->own) : cuCtxDestroy(worker->own));
}

static void end_contexts(struct worker *worker, unsigned mask, bool is_unseen) {
    if (!share)
        end_own(worker, is_unseen);
    for (int device = 0; share && worker->index == 0 && device < 2; device++)
        if (mask >> device & 1)
            end_primary(device, is_unseen);
}

/* The contexts of the sides in `mask` end with blocks in them; new ones take their place. */
static void lose_contexts(struct worker *worker, unsigned mask, bool is_unseen) {
    finish_work(worker);
    for (unsigned i = 0; i < worker->count; i++) {
        drop_graph(&worker->blocks[i]);
        if (mask >> worker->blocks[i].side & 1)
            forget_import(worker, &worker->blocks[i], true);
    }
    begin_calm();
    pthread_barrier_wait(&barrier);
    end_contexts(worker, mask, is_unseen && has_scene("unseen"));
    pthread_barrier_wait(&barrier);
    open_contexts(worker, mask);
    worker->peers_on = false;
    free_lost(worker, mask);
    end_calm();
    pthread_barrier_wait(&barrier);
    for (int side = 0; side < 2; side++)
        if (mask >> side & 1)
            open_side(worker, side);
}

/* ---- most of the device ---- */

static size_t most_of(int device) {
    size_t total;
    MUST(cuDeviceTotalMem(&total, device));
    return total / 10 * 6;
}

/* Fills the two ends, and looks at them. */
static void try_ends(struct worker *worker, void *start, size_t bytes, int stream) {
    char *last = (char *)start + bytes - 4096;
    struct block ends[] = {
        {.start = start, .bytes = 4096, .stream = stream, .side = side_of(stream)},
        {.start = last, .bytes = 4096, .stream = stream, .side = side_of(stream)}};
    for (int i = 0; i < 2; i++) {
        write_all(worker, &ends[i], stream);
        read_block(worker, &ends[i]);
    }
}

static void take_most(struct worker *worker, unsigned kind, int stream) {
    size_t bytes = most_of(side_of(stream) ? 1 - own_device(worker) : own_device(worker));
    enum past_kind past_kind = (enum past_kind)below(worker, PAST_KINDS);
    CUstream handle = worker->streams[stream];
    enter(worker, side_of(stream));
    void *start = take(worker, bytes);
    try_ends(worker, start, bytes, stream);
    /* Freed in one stream, while another one is held (not where it may have to be given back: limit
     * 5); or freed memory is the device's. */
    bool may_hold = !are_refused && !is_tight && has_scene("async");
    if (kind == 0 && stream < CREATED - 1 && may_hold) {
        close_gate(worker, CREATED - 1);
        MUST(release_async(start, handle));
        MUST(cuStreamSynchronize(handle));
        start = take(worker, bytes);
        open_gate(worker);
    } else if (kind == 1 && has_scene("past")) {
        give(worker, start, side_of(stream));
        enter(worker, side_of(stream));
        struct past past = take_past(past_kind, bytes, handle);
        try_ends(worker, pointer_to(past.start), bytes, stream);
        give_past(&past, handle);
        MUST(cuStreamSynchronize(handle));
        return;
    }
    try_ends(worker, start, bytes, stream);
    give(worker, start, side_of(stream));
}

/* All give back what they have, and one takes most of a device; something may capture. */
static void squeeze(struct worker *worker, uint64_t *state) {
    unsigned chosen = (unsigned)(draw(state) % thread_count);
    unsigned kind = (unsigned)(draw(state) % 3),
             capturer = (unsigned)(draw(state) % (thread_count + 1));
    int stream = has_far && draw(state) % 3 == 0 ? FAR : (int)(draw(state) % CREATED);
    while (worker->count)
        end_block(worker, &worker->blocks[worker->count - 1]);
    close_imports(worker);
    finish_work(worker);
    if (worker->index == capturer && worker->open == NONE && has_scene("open")) {
        CUstreamCaptureMode mode = draw_mode(worker);
        enter(worker, 0);
        MUST(begin_capture(worker->streams[CAPTURER], mode));
        worker->open = GOING;
    }
    begin_calm();
    pthread_barrier_wait(&barrier);
    /* Contexts of one small device: what one has cached then lies in pieces, and is not the others'
     * (docs/internals/safety.md, limit 7). */
    if (worker->index == chosen && has_scene("most") && (share || (!is_tight && has_scene("own"))))
        take_most(worker, kind, stream);
    pthread_barrier_wait(&barrier);
    end_calm();
}

/* ---- threads ---- */

/* Gives a block to the next thread, which goes on with it where its last use ended. */
static void pass_block(struct worker *worker) {
    struct block *given = share ? any(worker) : NULL;
    mailbox[worker->index] = (struct block){0};
    if (given) {
        drop_graph(given);
        finish_stream(worker, given->stream);
        use(worker, given, given->side ? FAR : given->stream % CREATED);
        write_all(worker, given, given->stream);
        mailbox[worker->index] = *given;
        forget_import(worker, given, false);
        *given = worker->blocks[--worker->count];
    }
    pthread_barrier_wait(&barrier);
    struct worker *giver = &workers[(worker->index + 1) % thread_count];
    struct block taken = mailbox[giver->index];
    if (taken.start) {
        CUevent event = worker->sides[taken.side].event;
        int stream = taken.side ? FAR : 0;
        MUST(cuEventRecord(event, giver->streams[taken.stream]));
        MUST(cuStreamWaitEvent(worker->streams[stream], event, 0));
        taken.stream = stream;
        if (worker->count < BLOCKS)
            worker->blocks[worker->count++] = taken;
        else
            give(worker, taken.start, taken.side);
    }
    pthread_barrier_wait(&barrier);
}

/* In every second phase there is but one stream, or what counts as one; the other scenes, most of
 * which use more, are rare then. */
static void begin_phase(struct worker *worker, uint64_t *state) {
    static const unsigned narrow[] = {
        1, 1 << LEGACY, 1 << LEGACY, 1 << LEGACY | 1 << BLOCKING, 1 << BLOCKING, 1 << OWN};
    static const unsigned wide[] = {(1 << STREAMS) - 1, (1 << CREATED) - 1, 1 << LEGACY | 1,
                                    1 << BLOCKING | 1 << OWN};
    worker->is_narrow = draw(state) % 2;
    worker->phase = worker->is_narrow ? narrow[draw(state) % (sizeof narrow / sizeof *narrow)]
                                      : wide[draw(state) % (sizeof wide / sizeof *wide)];
}

/* What all threads do together between rounds is drawn for all of them. */
static void meet(struct worker *worker, unsigned round) {
    uint64_t state = seed * 7919 + round;
    begin_phase(worker, &state);
    unsigned kind = (unsigned)(draw(&state) % 8);
    unsigned mask = share && has_far ? 1 + (unsigned)(draw(&state) % 3) : 1;
    if (kind == 0)
        lose_contexts(worker, mask, draw(&state) % 2);
    else if (kind < 3 && has_peers)
        change_peers(worker);
    else if (kind < 6)
        pass_block(worker);
    else
        squeeze(worker, &state);
}

/* By means that kernels are not, in the stream of the last use; flags are the usual context's. */
static void write_otherwise(struct worker *worker, struct block *block) {
    use(worker, block, block->stream);
    if (block->side == 0 && side_of(block->stream) == 0 && below(worker, 2))
        write_value(worker, block);
    else if (side_of(block->stream) == block->side)
        write_by_host(worker, block);
}

static void work_on(struct worker *worker, struct block *block, struct block *other) {
    enum { OTHER_SCENES = 49, RENEWAL = 56, SCENES = 66 };
    unsigned kind = below(worker, SCENES);
    __atomic_store_n(&last_seen, address(block->start), __ATOMIC_RELAXED);
    if (kind >= OTHER_SCENES && worker->is_narrow && worker->open == NONE)
        kind = below(worker, 10) ? kind % OTHER_SCENES : below(worker, 2) ? RENEWAL : kind;
    if (kind < 10) {
        use(worker, block, draw_user(worker, block));
        write_all(worker, block, block->stream);
    } else if (kind < 22) {
        use(worker, block, draw_user(worker, block));
        add_words(worker, block, block->stream);
    } else if (kind < 34 && block != other) {
        int stream = worker->peers_on ? draw_user(worker, block) : draw_any_stream(worker);
        use(worker, other, stream);
        use(worker, block, stream);
        copy_words(worker, block, other, stream);
    } else if (kind < 40)
        read_block(worker, block);
    else if (kind < 42)
        raise_flag(worker);
    else if (kind < 45)
        write_otherwise(worker, block);
    else if (kind < OTHER_SCENES)
        wait_for(worker, block->stream, thread_count == 1 && !is_watched && worker->open == NONE);
    else if (kind < 53)
        capture(worker, block);
    else if (kind < 54)
        break_and_end(worker, block);
    else if (kind < 55)
        change_open(worker, block);
    else if (kind < RENEWAL)
        hold(worker);
    else if (kind < 59)
        renew(worker);
    else if (kind < 61)
        use_graph(worker, block);
    else if (kind < 62)
        use_graph_memory(worker, block);
    else if (kind < 63)
        visit_library(worker, block);
    else if (kind < 64)
        visit_context(worker, block);
    else
        change_import(worker, block);
}

static void step(struct worker *worker) {
    struct block *block = any(worker), *other = any(worker);
    unsigned kind = below(worker, 100);
    if (!block || kind < 28)
        make_block(worker);
    else if (kind < 52)
        end_block(worker, block);
    else
        work_on(worker, block, other);
}

static void *work(void *argument) {
    struct worker *worker = argument;
    uint64_t state = seed;
    begin_phase(worker, &state);
    open_worker(worker);
    for (unsigned i = 0; i < steps; i++) {
        step(worker);
        if (i % round_steps == round_steps - 1) {
            meet(worker, i / round_steps);
            change_stream(worker);
        }
    }
    while (worker->count) {
        read_block(worker, &worker->blocks[0]);
        end_block(worker, &worker->blocks[0]);
    }
    enter(worker, 0);
    for (int i = 0; i < 3 && worker->own; i++)
        take(worker, (size_t)1000 << i); /* ends with its context */
    finish_work(worker);
    pthread_barrier_wait(&barrier);
    if (worker->own)
        end_own(worker, false);
    close_hostile_stack(&worker->stack);
    free(worker->bytes);
    return NULL;
}

static bool are_peers(void) {
    int here = 0, there = 0;
    MUST(cuDeviceCanAccessPeer(&here, 0, 1));
    MUST(cuDeviceCanAccessPeer(&there, 1, 0));
    return here && there;
}

static void draw_program(void) {
    const char *mode = getenv("BFC_FREE");
    uint64_t state = seed;
    thread_count = 1 + (unsigned)(draw(&state) % MOST_THREADS);
    share = draw(&state) % 3 != 0;
    has_far = draw(&state) % 2 && device_count() > 1;
    has_peers = has_far && are_peers();
    has_global = draw(&state) % 2;
    crosses = draw(&state) % 2;
    is_watched = draw(&state) % 3 == 0 && has_scene("monitor");
    has_importer = draw(&state) % 4 == 0 && has_scene("import");
    has_barrier = !mode || strcmp(mode, "sync") == 0;
}

/* The other process: it has what the first thread of a program has, and no blocks of its own. */
static int import_for_another(void) {
    struct worker worker = {.bytes = malloc(4 * (size_t)MOST_WORDS)};
    return serve(&worker);
}

int main(int count, char **arguments) {
    pthread_t threads[MOST_THREADS];
    uint64_t operations = 0;
    if (count < 2) {
        fprintf(stderr, "usage: random_program SEED [STEPS [small]]\n");
        return 2;
    }
    without = getenv("RANDOM_WITHOUT");
    are_refused = getenv("RANDOM_REFUSED") != NULL;
    if (strcmp(arguments[1], "import") == 0)
        return import_for_another();
    seed = strtoull(arguments[1], NULL, 10);
    if (count > 2)
        steps = (unsigned)strtoul(arguments[2], NULL, 10);
    is_small = count > 3;
    round_steps = is_small ? 200 : 40;
    draw_program();
    use_device(0);
    is_tight = most_of(0) < ((size_t)1 << 29);
    pthread_barrier_init(&barrier, NULL, thread_count);
    if (has_importer)
        start_importer(&importer);
    if (is_watched)
        start_monitor(&seed);
    for (unsigned i = 0; i < thread_count; i++) {
        workers[i] = (struct worker){.index = i, .state = seed * 1000 + i, .digest = 1469598103u};
        pthread_create(&threads[i], NULL, work, &workers[i]);
    }
    for (unsigned i = 0; i < thread_count; i++) {
        pthread_join(threads[i], NULL);
        printf("thread %u: %016llx\n", i, (unsigned long long)workers[i].digest);
        operations += workers[i].operations;
    }
    if (is_watched)
        end_monitor();
    printf("operations: %llu\n", (unsigned long long)operations);
    return 0;
}
