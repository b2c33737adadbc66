/* Keeps the exports of blocks that lie in pages, in a hash table by the block's id, under a
 * lock. */
#include "interpose/features/share/page_exports.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "interpose/context/capture.h"
#include "interpose/host/background.h"
#include "pool/pages.h"

struct export {
    struct bfc_token token;
    struct bfc_arena *arena; /* lives as long as the export, which has a reference to it */
    bfc_addr start;
    uint64_t bytes;
    unsigned holds; /* how many threads are answering a request for this export */
    bool ended;
    struct export *next;
};

enum { CHAINS = 256 };

static struct {
    pthread_mutex_t lock;
    struct export *chains[CHAINS];
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool any; /* atomic: whether there ever was an export */

static struct export **chain_of(uint64_t id) {
    return &all.chains[id % CHAINS];
}

struct span {
    bfc_addr start, end;
};

static bool widen_range(void *context, const struct bfc_page_info *page) {
    struct span *span = context;
    if (span->start == span->end)
        span->start = page->start;
    span->end = page->start + page->bytes;
    return true;
}

bool bfc_page_exports_describe(struct bfc_arena *arena, const struct bfc_block_info *block,
                               struct bfc_row *row) {
    struct span span = {0};
    uint64_t pages =
        bfc_pool_visit_pages(arena->pool, block->start, block->requested, widen_range, &span);
    if (pages == 0)
        return false;
    *row = (struct bfc_row){.region_size = span.end - span.start,
                            .offset = block->start - span.start,
                            .size = block->requested,
                            .pages = pages};
    return true;
}

static void release_export(struct export *export) {
    bfc_pool_unpin(export->arena->pool, export->start, export->bytes);
    bfc_arena_drop(export->arena);
    free(export);
}

static void list_export(struct export *export) {
    struct export **chain = chain_of(export->token.generation);
    pthread_mutex_lock(&all.lock);
    export->next = *chain;
    *chain = export;
    pthread_mutex_unlock(&all.lock);
    bfc_store_release(&any, true);
}

bool bfc_page_exports_add(const struct bfc_token *token, struct bfc_arena *arena,
                          const struct bfc_block_info *block) {
    struct export *export = malloc(sizeof *export);
    if (!export)
        return false;
    *export = (struct export){
        .token = *token, .arena = arena, .start = block->start, .bytes = block->requested};
    if (!bfc_pool_pin(arena->pool, export->start, export->bytes)) {
        free(export);
        return false;
    }
    bfc_arena_keep(arena);
    list_export(export);
    return true;
}

/* Removes the export of this token from the hash table and returns it; NULL: there is none. The
 * caller holds the lock. */
static struct export *unlist_export(const struct bfc_token *token) {
    struct export **link = chain_of(token->generation);
    while (*link && memcmp(&(*link)->token, token, sizeof *token) != 0)
        link = &(*link)->next;
    struct export *export = *link;
    if (export)
        *link = export->next;
    return export;
}

void bfc_page_exports_end(const struct bfc_token *token) {
    if (!bfc_load_acquire(&any))
        return;
    pthread_mutex_lock(&all.lock);
    struct export *export = unlist_export(token);
    bool last = export && export->holds == 0;
    if (export)
        export->ended = true;
    pthread_mutex_unlock(&all.lock);
    if (last)
        release_export(export);
}

/* Finds the export with whose key the request was sealed, and keeps it from being freed until
 * let_go is called. NULL: there is no such export. */
static struct export *hold_export(const struct bfc_page_request *request) {
    pthread_mutex_lock(&all.lock);
    struct export *export = *chain_of(request->generation);
    while (export && (export->token.generation != request->generation ||
                      export->token.table != request->table ||
                      !bfc_page_request_is_intact(export->token.key, request)))
        export = export->next;
    if (export)
        export->holds++;
    pthread_mutex_unlock(&all.lock);
    return export;
}

/* Ends the use of an export that began with hold_export. False: the block was freed meanwhile, so
 * that the export has ended. */
static bool let_go(struct export *export) {
    pthread_mutex_lock(&all.lock);
    bool lives = !export->ended, last = --export->holds == 0 && !lives;
    pthread_mutex_unlock(&all.lock);
    if (last)
        release_export(export);
    return lives;
}

struct batch {
    uint64_t skip; /* how many more pages of the block to skip */
    unsigned count;
    struct bfc_page_info pages[BFC_LOCAL_FILES];
};

static bool add_page(void *context, const struct bfc_page_info *page) {
    struct batch *batch = context;
    if (batch->skip > 0)
        batch->skip--;
    else
        batch->pages[batch->count++] = *page;
    return batch->count < BFC_LOCAL_FILES;
}

static void close_all(const int *files, uint64_t count) {
    while (count > 0)
        close(files[--count]);
}

static CUresult export_page(const struct bfc_driver *driver, bfc_page page, int *file) {
    CUresult result = driver->cuMemExportToShareableHandle(
        file, page, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    if (result == CUDA_SUCCESS)
        fcntl(*file, F_SETFD, FD_CLOEXEC);
    return result;
}

static void export_batch(const struct bfc_driver *driver, const struct batch *batch,
                         struct bfc_page_reply *reply, int *files) {
    CUresult result = CUDA_SUCCESS;
    unsigned done = 0;
    CUstreamCaptureMode mode = bfc_capture_relax_now(driver);
    for (; done < batch->count && result == CUDA_SUCCESS; done += result == CUDA_SUCCESS) {
        reply->bytes[done] = batch->pages[done].bytes;
        result = export_page(driver, batch->pages[done].page, &files[done]);
    }
    bfc_capture_restore(driver, mode);
    if (result != CUDA_SUCCESS)
        close_all(files, done);
    reply->count = result == CUDA_SUCCESS ? done : 0;
    reply->result = (uint64_t)result;
}

/* Exports as many of the block's pages as one message can carry, from index `first` on. False: the
 * process or the context is ending. If the context ends while this function runs, its pages are
 * given back only after the function has returned. */
static bool export_pages(const struct bfc_driver *driver, const struct export *export,
                         uint64_t first, struct bfc_page_reply *reply, int *files) {
    struct batch batch = {.skip = first};
    if (!bfc_arena_enter(export->arena))
        return false;
    bfc_pool_visit_pages(export->arena->pool, export->start, export->bytes, add_page, &batch);
    export_batch(driver, &batch, reply, files);
    bfc_arena_leave(export->arena);
    return true;
}

static bool answer_held(const struct bfc_driver *driver, const struct export *export,
                        const struct bfc_page_request *request, struct bfc_page_reply *reply,
                        int *files) {
    *reply = (struct bfc_page_reply){0};
    if (!bfc_background_begin())
        return false;
    bool answered = export_pages(driver, export, request->first, reply, files);
    bfc_background_end();
    bfc_page_reply_seal(export->token.key, request, reply);
    return answered;
}

bool bfc_page_exports_answer(const struct bfc_driver *driver,
                             const struct bfc_page_request *request, struct bfc_page_reply *reply,
                             int files[BFC_LOCAL_FILES]) {
    struct export *export = hold_export(request);
    if (!export)
        return false;
    bool answered = answer_held(driver, export, request, reply, files);
    if (let_go(export) && answered)
        return true;
    close_all(files, reply->count);
    return false;
}
