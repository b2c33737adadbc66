// Memory apart from addresses: what cuMemCreate makes.
//
// The bytes of a device's chunks lie in one sparse memory file, each chunk at an offset of its own
// that is never used again, so chunks need no run of free pages. A page with a label comes before
// each. A chunk is exported as a further opening of that file, positioned at its bytes, with a read
// lock on them; an importer opens the file once more and locks the same bytes. Locks belong to
// openings, so they go when the last process that has one closes it or dies, and whoever made the
// chunk sees from the locks whether its memory is still used. Guarded by the lock.
#include "sim/memory/chunk.h"

#include "sim/base/ids.h"
#include "sim/base/limits.h"
#include "sim/device/devices.h"
#include "sim/device/pages.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LABEL_BYTES = 4096 };

// A file with the bytes of chunks.
struct sim_store {
    struct sim_store *next;
    int file;
    dev_t system;
    ino_t inode;
    off_t end;      // of our own
    unsigned users; // of another process's: chunks
};

struct label {
    char magic[8];
    int32_t device;
    uint64_t size;
    CUmemAllocationProp properties;
};

static const char magic[8] = "simvmm1";
static struct sim_store own[SIM_MAX_DEVICES];
static struct sim_store *foreign;
static struct sim_chunk *shared;
static unsigned lingering;

// ---- stores ----

static bool identify(struct sim_store *store) {
    struct stat status;
    if (store->file < 0 || fstat(store->file, &status) != 0) {
        return false;
    }
    store->system = status.st_dev;
    store->inode = status.st_ino;
    return true;
}

static bool is_own(const struct sim_store *store) {
    return store >= own && store < own + SIM_MAX_DEVICES;
}

static int open_again(int file) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    return open(path, O_RDWR | O_CLOEXEC);
}

static struct sim_store *find_store(const struct stat *status) {
    for (size_t i = 0; i < SIM_MAX_DEVICES; i++) {
        if (own[i].end != 0 && own[i].system == status->st_dev && own[i].inode == status->st_ino) {
            return &own[i];
        }
    }
    struct sim_store *store = foreign;
    while (store != NULL && (store->system != status->st_dev || store->inode != status->st_ino)) {
        store = store->next;
    }
    return store;
}

static struct sim_store *open_foreign(int descriptor) {
    struct sim_store *store = calloc(1, sizeof *store);
    if (store == NULL) {
        return NULL;
    }
    store->file = open_again(descriptor);
    if (!identify(store)) {
        free(store);
        return NULL;
    }
    store->next = foreign;
    foreign = store;
    return store;
}

static void leave_foreign(struct sim_store *store) {
    if (store->users > 0) {
        return;
    }
    struct sim_store **link = &foreign;
    while (*link != store) {
        link = &(*link)->next;
    }
    *link = store->next;
    close(store->file);
    free(store);
}

// ---- locks: who uses which bytes ----

static bool set_lock(int file, short type, const struct sim_chunk *chunk) {
    struct flock lock = {.l_type = type,
                         .l_whence = SEEK_SET,
                         .l_start = chunk->offset,
                         .l_len = (off_t)chunk->size};
    return fcntl(file, F_OFD_SETLK, &lock) == 0;
}

static bool used_elsewhere(const struct sim_chunk *chunk) {
    struct flock lock = {.l_type = F_WRLCK,
                         .l_whence = SEEK_SET,
                         .l_start = chunk->offset,
                         .l_len = (off_t)chunk->size};
    return chunk->shared && fcntl(chunk->store->file, F_OFD_GETLK, &lock) == 0 &&
           lock.l_type != F_UNLCK;
}

static void share(struct sim_chunk *chunk) {
    if (chunk->shared) {
        return;
    }
    chunk->shared = true;
    chunk->next_shared = shared;
    chunk->link = &shared;
    if (shared != NULL) {
        shared->link = &chunk->next_shared;
    }
    shared = chunk;
}

static void unshare(struct sim_chunk *chunk) {
    if (chunk->shared) {
        *chunk->link = chunk->next_shared;
        if (chunk->next_shared != NULL) {
            chunk->next_shared->link = chunk->link;
        }
    }
}

// ---- chunks ----

static bool place(struct sim_chunk *chunk) {
    struct sim_store *store = &own[chunk->device->ordinal];
    if (store->end == 0) {
        store->file = memfd_create("sim-chunks", MFD_CLOEXEC);
        if (!identify(store)) {
            return false;
        }
    }
    off_t start = store->end + LABEL_BYTES, end = start + (off_t)chunk->size;
    if (ftruncate(store->file, end) != 0) {
        return false;
    }
    chunk->store = store;
    chunk->offset = start;
    store->end = end;
    return true;
}

struct sim_chunk *sim_chunk_new(struct sim_device *device, size_t size,
                                const CUmemAllocationProp *properties) {
    if (!sim_pages_charge(device, size / SIM_PAGE)) {
        return NULL;
    }
    struct sim_chunk *chunk = calloc(1, sizeof *chunk);
    if (chunk != NULL) {
        *chunk = (struct sim_chunk){.device = device, .properties = *properties, .size = size};
    }
    if (chunk == NULL || !place(chunk)) {
        sim_pages_refund(device, size / SIM_PAGE);
        free(chunk);
        return NULL;
    }
    chunk->id = sim_next_buffer_id();
    return chunk;
}

int sim_chunk_file(const struct sim_chunk *chunk) {
    return chunk->store->file;
}

static void set_lingering(struct sim_chunk *chunk, bool lingers) {
    lingering += lingers && !chunk->lingers;
    lingering -= chunk->lingers && !lingers;
    chunk->lingers = lingers;
}

static void give_bytes(const struct sim_chunk *chunk) {
    fallocate(chunk->store->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
              chunk->offset - LABEL_BYTES, (off_t)chunk->size + LABEL_BYTES);
    sim_pages_refund(chunk->device, chunk->size / SIM_PAGE);
}

static void leave_bytes(const struct sim_chunk *chunk) {
    set_lock(chunk->store->file, F_UNLCK, chunk);
    chunk->store->users--;
    leave_foreign(chunk->store);
}

void sim_chunk_settle(struct sim_chunk *chunk) {
    if (chunk->handles > 0 || chunk->mappings > 0) {
        return;
    }
    set_lingering(chunk, is_own(chunk->store) && used_elsewhere(chunk));
    if (chunk->lingers) {
        return;
    }
    unshare(chunk);
    if (is_own(chunk->store)) {
        give_bytes(chunk);
    } else {
        leave_bytes(chunk);
    }
    free(chunk);
}

void sim_chunks_collect(void) {
    struct sim_chunk *next = NULL;
    for (struct sim_chunk *c = lingering > 0 ? shared : NULL; c != NULL; c = next) {
        next = c->next_shared;
        if (c->lingers) {
            sim_chunk_settle(c);
        }
    }
}

// ---- descriptors ----

static bool label(const struct sim_chunk *chunk) {
    struct label label = {
        .device = chunk->device->ordinal, .size = chunk->size, .properties = chunk->properties};
    memcpy(label.magic, magic, sizeof magic);
    return pwrite(chunk->store->file, &label, sizeof label, chunk->offset - LABEL_BYTES) ==
           (ssize_t)sizeof label;
}

int sim_chunk_describe(struct sim_chunk *const *chunks, size_t count, size_t skip) {
    int file = open_again(sim_chunk_file(chunks[0]));
    bool made = file >= 0;
    for (size_t i = 0; made && i < count; i++) {
        made = label(chunks[i]) && set_lock(file, F_RDLCK, chunks[i]);
        share(chunks[i]);
    }
    if (made) {
        lseek(file, chunks[0]->offset + (off_t)skip, SEEK_SET);
        return file;
    }
    if (file >= 0) {
        close(file);
    }
    return -1;
}

static struct sim_chunk *find_chunk(const struct sim_store *store, off_t offset) {
    struct sim_chunk *chunk = shared;
    while (chunk != NULL && (chunk->store != store || chunk->offset != offset)) {
        chunk = chunk->next_shared;
    }
    return chunk;
}

static CUresult import_foreign(struct sim_store *store, off_t offset, const struct label *label,
                               struct sim_chunk **out) {
    struct sim_chunk *chunk = calloc(1, sizeof *chunk);
    if (chunk == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *chunk = (struct sim_chunk){.device = sim_device_of(label->device),
                                .properties = label->properties,
                                .store = store,
                                .offset = offset,
                                .size = label->size,
                                .id = sim_next_buffer_id()};
    if (!set_lock(store->file, F_RDLCK, chunk)) {
        free(chunk);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    store->users++;
    share(chunk);
    *out = chunk;
    return CUDA_SUCCESS;
}

CUresult sim_chunk_import(int descriptor, struct sim_chunk **out) {
    struct stat status;
    struct label label;
    off_t offset = lseek(descriptor, 0, SEEK_CUR);
    if (offset < LABEL_BYTES || fstat(descriptor, &status) != 0 ||
        pread(descriptor, &label, sizeof label, offset - LABEL_BYTES) != (ssize_t)sizeof label ||
        memcmp(label.magic, magic, sizeof magic) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (sim_device_of(label.device) == NULL) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    struct sim_store *store = find_store(&status);
    *out = store != NULL ? find_chunk(store, offset) : NULL;
    if (*out != NULL) {
        set_lingering(*out, false);
        return CUDA_SUCCESS;
    }
    store = store != NULL ? store : open_foreign(descriptor);
    if (store != NULL && is_own(store)) {
        return CUDA_ERROR_INVALID_VALUE; // positioned elsewhere meanwhile
    }
    if (store == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    CUresult result = import_foreign(store, offset, &label, out);
    leave_foreign(store);
    return result;
}
