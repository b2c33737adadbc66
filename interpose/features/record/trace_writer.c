/*
 * `lock` guards the buffers and the table from addresses of allocations to their numbers in the
 * trace (serials). No system call is made under it, except to enlarge the table. The file is opened
 * anew for each block of the trace, because a program may close descriptors that it did not open.
 *
 * The trace's blocks are compressed by the system's libzstd, which is opened when a recording
 * begins, because this library links nothing but libc. Where libzstd is not installed, they are not
 * compressed.
 */
#include "interpose/features/record/record.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "base/numbers.h"
#include "base/open_file.h"
#include "interpose/arena/arena.h"
#include "interpose/config/process.h"
#include "interpose/features/common/program.h"
#include "interpose/host/background.h"
#include "interpose/host/c_library.h"
#include "interpose/host/quiet.h"
#include "interpose/host/scratch.h"
#include "layout/trace.h"
#include "pool/pool.h"
#include "pool/structures/lock.h"

#define BUFFERS 8
#define RECORDS 8192 /* how many records fill a buffer, which becomes one block of the trace */
#define FLUSH_NS 500000000L
#define NAP_NS 100000
#define MOST_NAPS 10000 /* the most sleeps in one wait for a free buffer: a second in all */
#define FIRST_SLOTS 4096
#define STREAMS_MOST 64
#define COMPRESSION 1

enum recording { NOT_BEGUN, RECORDING, ENDED };

static struct pool_lock lock;
static uint32_t recording; /* atomic: whether records are written; a value of enum recording */

/* The buffers of records form a ring. `lock` guards them, except for the records in a full buffer,
 * which only the writing thread reads. */
static struct bfc_trace_record (*buffers)[RECORDS];
static uint32_t counts[BUFFERS];
/* the numbers of the buffer that is being filled and of the one to be written next; they only rise,
 * and a buffer's index is its number modulo BUFFERS */
static uint32_t filling, writing;
/* whether a thread has waited in vain for a free buffer, and none was written since */
static bool gave_up;
static uint64_t sequence, serial;
static uint32_t threads;
static CUstream streams[STREAMS_MOST]; /* element i is the stream that has the number i + 1 in the
                                          trace */
static uint32_t stream_count;

static uint32_t wakes; /* a futex, to which a thread that has filled a buffer adds 1 */
/* an absolute path, since the program may change its working directory */
static char path[4096 + 300];
static dev_t file_device; /* device and inode number of the file that this process created */
static ino_t file_inode;
static char *packed;     /* the buffer for one block of the trace, as it is written to the file */
static char *unpacked;   /* the buffer for call stacks, before they are compressed */
static bool writer_busy; /* atomic: a lock for the file, in which both the writing thread and the
                            exiting thread write */

/* the number of this thread in the trace; 0: it has made no record yet */
static __thread uint32_t thread_number INITIAL_EXEC;

/* The call stack of the allocation that this thread is about to record. */
static __thread struct {
    CUdeviceptr pointer;
    double weight;
    uint32_t site;
} stack INITIAL_EXEC;

struct slot {
    uint64_t address; /* 0: this entry of the table is free */
    uint64_t serial;
};

static struct slot *slots;
static uint64_t slot_mask, slots_used;

static uint64_t home_of(uint64_t address) {
    return (address >> 8) * UINT64_C(0x9e3779b97f4a7c15) >> 20 & slot_mask;
}

static struct slot *find_block_slot(uint64_t address) {
    uint64_t i = home_of(address);
    while (slots[i].address && slots[i].address != address)
        i = (i + 1) & slot_mask;
    return &slots[i];
}

static bool grow_slots(void) {
    struct slot *old = slots;
    uint64_t old_count = slot_mask + 1, count = old ? old_count * 2 : FIRST_SLOTS;
    struct slot *fresh = bfc_scratch_begin(count * sizeof *fresh);
    if (!fresh)
        return false;
    slots = fresh;
    slot_mask = count - 1;
    for (uint64_t i = 0; old && i < old_count; i++)
        if (old[i].address)
            *find_block_slot(old[i].address) = old[i];
    bfc_scratch_end(old, old_count * sizeof *old);
    return true;
}

static void set_serial(uint64_t address, uint64_t number) {
    if ((slots_used + 1) * 2 > slot_mask + 1 && !grow_slots())
        return; /* the table cannot grow, so the block's free will not be recorded */
    struct slot *slot = find_block_slot(address);
    slots_used += slot->address == 0;
    *slot = (struct slot){address, number};
}

/* Removes the address from the table and returns its serial; 0 if it is not in the table. Later
 * entries of the table move into the gap, because a search ends at the first free entry. */
static uint64_t take_serial(uint64_t address) {
    uint64_t i = (uint64_t)(find_block_slot(address) - slots), number = slots[i].serial;
    if (!slots[i].address)
        return 0;
    slots_used--;
    for (uint64_t j = (i + 1) & slot_mask; slots[j].address; j = (j + 1) & slot_mask)
        if (((j - home_of(slots[j].address)) & slot_mask) >= ((j - i) & slot_mask)) {
            slots[i] = slots[j];
            i = j;
        }
    slots[i] = (struct slot){0, 0};
    return number;
}

#define STACKS_ROOM ((size_t)256 << 10)

static struct bfc_stack_tables (*stacks_now)(void); /* atomic: returns the tables of call stacks;
                                                       NULL: no stack was recorded yet */
static struct bfc_trace_counts copied; /* how many elements of each table of call stacks the trace
                                          has already */

static size_t put_bytes(char *to, const void *from, size_t bytes) {
    memcpy(to, from, bytes);
    return bytes;
}

/* Copies sites without their sums, which change later and so mean nothing in a trace. */
static size_t put_sites(char *to, const struct bfc_who_site *from, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        struct bfc_who_site site = {.first = from[i].first,
                                    .native = from[i].native,
                                    .python = from[i].python,
                                    .tag = from[i].tag};
        put_bytes(to + i * sizeof site, &site, sizeof site);
    }
    return count * sizeof *from;
}

/* Returns how many new elements of `size` bytes go into the next block of the trace: each of the
 * four tables of call stacks gets at most an eighth of the buffer. */
static uint32_t next_part(uint32_t known, uint32_t had, size_t size) {
    return (uint32_t)bfc_min(known - had, STACKS_ROOM / 8 / size);
}

/* Writes into `to`, as the contents of one block of the trace, what was added to the tables of call
 * stacks since the last call. Returns its size; 0 if nothing was added. What does not fit is left
 * for the next call. */
static size_t take_stacks(char *to) {
    struct bfc_stack_tables (*ask)(void) = bfc_load_acquire(&stacks_now);
    if (!ask)
        return 0;
    const struct bfc_stack_tables now = ask();
    const struct bfc_trace_counts part = {
        .sites = next_part(now.known.sites, copied.sites, sizeof *now.sites),
        .frames = next_part(now.known.frames, copied.frames, sizeof *now.frames),
        .objects = next_part(now.known.objects, copied.objects, sizeof *now.objects),
        .texts = next_part(now.known.texts, copied.texts, 1),
        .executable = now.known.executable};
    if (!part.sites && !part.frames && !part.objects && !part.texts)
        return 0;
    size_t size = put_bytes(to, &part, sizeof part);
    size += put_sites(to + size, now.sites + copied.sites, part.sites);
    size += put_bytes(to + size, now.frames + copied.frames, part.frames * sizeof *now.frames);
    size += put_bytes(to + size, now.objects + copied.objects, part.objects * sizeof *now.objects);
    size += put_bytes(to + size, now.texts + copied.texts, part.texts);
    copied.sites += part.sites;
    copied.frames += part.frames;
    copied.objects += part.objects;
    copied.texts += part.texts;
    return size;
}

static void fill_header(struct bfc_trace_header *header) {
    const struct bfc_driver *driver = bfc_driver();
    CUdevice device;
    *header = (struct bfc_trace_header){
        .magic = BFC_TRACE_MAGIC,
        .version = BFC_TRACE_VERSION,
        .byte_order = BFC_TRACE_BYTE_ORDER,
        .record_bytes = sizeof(struct bfc_trace_record),
        .process = (uint32_t)getpid(),
        .rounding = BFC_GRANULE,
        .executable_hash = bfc_program_executable_hash(),
        .argument_hash = bfc_program_argument_hash(),
        .started = bfc_wall_clock_ns(),
    };
    if (driver->cuCtxGetDevice(&device) != CUDA_SUCCESS)
        return;
    size_t total;
    if (driver->cuDeviceGetName)
        driver->cuDeviceGetName(header->device, (int)sizeof header->device, device);
    if (driver->cuDeviceTotalMem_v2(&total, device) == CUDA_SUCCESS)
        header->device_bytes = total;
}

/* Whether the file of this name is the trace of another process that still runs. */
static bool is_taken(const char *name) {
    struct bfc_trace_header header;
    int file = bfc_open(name, O_RDONLY | O_NONBLOCK, 0);
    ssize_t length = file < 0 ? 0 : read(file, &header, sizeof header);
    if (file >= 0)
        close(file);
    return length == (ssize_t)sizeof header &&
           memcmp(header.magic, BFC_TRACE_MAGIC, sizeof header.magic) == 0 &&
           header.process != (uint32_t)getpid() &&
           (kill((pid_t)header.process, 0) == 0 || errno == EPERM);
}

/* Returns the working directory with a slash at its end; "" if the wanted path is absolute, or if
 * the directory has no name. */
static const char *base_folder(const char *wanted, char *folder, size_t size) {
    if (wanted[0] == '/' || !getcwd(folder, size - 1) || folder[0] != '/')
        return "";
    return strcat(folder, "/");
}

/* Sets `path`, where the trace goes. In the wanted name, %p stands for the process's id. */
static void name_file(const char *wanted) {
    static char folder[4096];
    const char *place = strstr(wanted, "%p"), *base = base_folder(wanted, folder, sizeof folder);
    if (place)
        snprintf(path, sizeof path, "%s%.*s%d%s", base, (int)(place - wanted), wanted, getpid(),
                 place + 2);
    else
        snprintf(path, sizeof path, "%s%s", base, wanted);
    if (place || !is_taken(path))
        return;
    snprintf(path, sizeof path, "%s%.255s.%d", base, wanted, getpid());
    bfc_log(BFC_LOG_WARN, "BFC_RECORD: another process records into %s, this one into %s", wanted,
            path);
}

/* Appends bytes to the trace. If that fails, the part that was written is cut off again; where even
 * that fails, readers accept an incomplete block at the end. */
static bool append_to_block(int file, const char *bytes, size_t size) {
    struct bfc_quiet quiet;
    bfc_quiet_begin(&quiet); /* withholds SIGXFSZ, raised by a write beyond a file size limit */
    off_t before = lseek(file, 0, SEEK_END);
    bool good = bfc_write_all(file, bytes, size);
    int reason = errno;
    if (!good && before >= 0)
        (void)!ftruncate(file, before);
    errno = reason;
    bfc_quiet_end(&quiet);
    return good;
}

static void stop_trace(const char *why, const char *what_is_left) {
    bfc_store_release(&recording, ENDED);
    bfc_log(BFC_LOG_ERROR, "BFC_RECORD=%.300s: %s; %s", path, why, what_is_left);
}

/* Returns why a file must not be overwritten. NULL: it may be, since it is a character device, or
 * since it was empty or a trace and is now empty. */
static const char *refusal_reason(int file) {
    char magic[sizeof(struct bfc_trace_header){0}.magic];
    struct stat status;
    if (syscall(SYS_fstat, file, &status) != 0)
        return strerror(errno);
    file_device = status.st_dev;
    file_inode = status.st_ino;
    if (S_ISCHR(status.st_mode))
        return NULL;
    if (!S_ISREG(status.st_mode))
        return "this is no plain file";
    if (status.st_size > 0 && (pread(file, magic, sizeof magic, 0) != (ssize_t)sizeof magic ||
                               memcmp(magic, BFC_TRACE_MAGIC, sizeof magic) != 0))
        return "a file that is no trace lies there, and stays";
    return ftruncate(file, 0) == 0 ? NULL : strerror(errno);
}

/* Creates the trace's file with its header. It is opened with O_NONBLOCK, so that the program does
 * not wait if a device or a pipe has that name. */
static bool create_trace_file(const struct bfc_trace_header *header) {
    int file = bfc_open(path, O_RDWR | O_APPEND | O_CREAT | O_NONBLOCK, 0666);
    const char *why = file < 0 ? strerror(errno) : refusal_reason(file);
    if (!why && !append_to_block(file, (const char *)header, sizeof *header))
        why = strerror(errno);
    if (file >= 0)
        close(file);
    if (why)
        stop_trace(why, "nothing is recorded");
    return !why;
}

/* Appends a block to the trace's file. Fails with ESTALE if another file has taken the place of the
 * one that this process created. */
static bool append_to_trace(const char *bytes, size_t size) {
    struct stat status;
    int file = bfc_open(path, O_WRONLY | O_APPEND | O_NONBLOCK, 0);
    if (file < 0)
        return false;
    bool good = syscall(SYS_fstat, file, &status) == 0;
    if (good && (status.st_dev != file_device || status.st_ino != file_inode)) {
        errno = ESTALE;
        good = false;
    }
    good = good && append_to_block(file, bytes, size);
    int reason = errno;
    close(file);
    errno = reason;
    return good;
}

/* Functions of libzstd; `compress` is NULL if libzstd is not installed. */
static struct {
    size_t (*compress)(void *to, size_t room, const void *from, size_t size, int level);
    unsigned (*is_error)(size_t result);
} zstd;

static void load_zstd(void) {
    void *library = bfc_real_dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library) {
        *(void **)&zstd.compress = bfc_real_dlsym(library, "ZSTD_compress");
        *(void **)&zstd.is_error = bfc_real_dlsym(library, "ZSTD_isError");
    }
    bfc_forget_dl_error();
    if (!zstd.compress || !zstd.is_error)
        zstd.compress = NULL;
}

/* Compresses the payload of a block into `to`, or copies it where that fails. Returns the size. */
static size_t pack_payload(char *to, const void *payload, size_t size,
                           enum bfc_trace_codec *codec) {
    size_t packed_size =
        zstd.compress ? zstd.compress(to, sizeof *buffers, payload, size, COMPRESSION) : 0;
    *codec = zstd.compress && !zstd.is_error(packed_size) ? BFC_TRACE_ZSTD : BFC_TRACE_PLAIN;
    if (*codec == BFC_TRACE_ZSTD)
        return packed_size;
    memcpy(to, payload, size);
    return size;
}

static void write_block(struct bfc_trace_block head, const void *payload, size_t size) {
    enum bfc_trace_codec codec;
    if (bfc_load_acquire(&recording) != RECORDING)
        return;
    head.magic = BFC_TRACE_BLOCK_MAGIC;
    head.bytes = (uint32_t)pack_payload(packed + sizeof head, payload, size, &codec);
    head.codec = (uint16_t)codec;
    head.sum = bfc_trace_sum(packed + sizeof head, head.bytes);
    memcpy(packed, &head, sizeof head);
    if (!append_to_trace(packed, sizeof head + head.bytes))
        stop_trace(errno == ESTALE ? "another file lies there now" : strerror(errno),
                   "recording ends here, what was written is good");
}

/* Writes the settings in force into the trace once, before all other blocks, so that a replay can
 * start from them. */
static void write_settings(void) {
    static bool written;
    if (written)
        return;
    written = true;
    bfc_options_print(&bfc_process_if_made()->options, unpacked, STACKS_ROOM);
    size_t size = strlen(unpacked);
    write_block((struct bfc_trace_block){.kind = BFC_TRACE_SETTINGS, .records = (uint32_t)size},
                unpacked, size);
}

/* Writes call stacks that the trace does not have yet. That comes before the records of a buffer
 * are written, which may refer to them. */
static void write_stacks(void) {
    size_t size;
    while ((size = take_stacks(unpacked)))
        write_block((struct bfc_trace_block){.kind = BFC_TRACE_STACKS, .records = (uint32_t)size},
                    unpacked, size);
}

/* Whether the buffer with the number `writing` is to be written: it is full, or, if `all`, it has
 * any record. No more records are added to it then. */
static bool take_buffer(bool all) {
    pool_lock(&lock);
    bool taken = writing != filling;
    if (!taken && all && counts[filling % BUFFERS]) {
        filling++;
        taken = true;
    }
    pool_unlock(&lock);
    return taken;
}

static void write_buffers(bool all) {
    unsigned tries = 0;
    while (bfc_exchange_acquire(&writer_busy, true))
        bfc_back_off(&tries);
    while (bfc_load_acquire(&recording) == RECORDING && take_buffer(all)) {
        uint32_t i = writing % BUFFERS;
        write_settings();
        write_stacks();
        write_block((struct bfc_trace_block){.kind = BFC_TRACE_RECORDS,
                                             .records = counts[i],
                                             .first = buffers[i][0].sequence},
                    buffers[i], counts[i] * sizeof *buffers[i]);
        pool_lock(&lock);
        counts[i] = 0;
        writing++;
        gave_up = false;
        pool_unlock(&lock);
    }
    bfc_store_release(&writer_busy, false);
}

static void *run_writer(void *unused) {
    const struct timespec flush = {.tv_nsec = FLUSH_NS};
    while (bfc_load_acquire(&recording) == RECORDING) {
        uint32_t seen = bfc_load_acquire(&wakes);
        write_buffers(false);
        long slept = syscall(SYS_futex, &wakes, FUTEX_WAIT_PRIVATE, seen, &flush, NULL, 0);
        if (slept != 0 && errno == ETIMEDOUT)
            write_buffers(true);
    }
    return unused;
}

static bool take_memory(void) {
    size_t records = BUFFERS * sizeof *buffers;
    size_t room = sizeof(struct bfc_trace_block) + sizeof *buffers;
    char *memory = bfc_scratch_begin(records + room + STACKS_ROOM);
    if (!memory)
        return false;
    buffers = (void *)memory;
    packed = memory + records;
    unpacked = packed + room;
    return grow_slots();
}

static void begin_trace(const char *wanted) {
    struct bfc_trace_header header;
    name_file(wanted);
    load_zstd();
    fill_header(&header);
    bfc_store_release(&recording, RECORDING);
    if (!take_memory())
        stop_trace("no host memory", "nothing is recorded");
    else if (create_trace_file(&header) && !bfc_thread_start(run_writer, NULL, 0))
        stop_trace("no thread could be started", "nothing is recorded");
}

static bool is_recording(void) {
    static pthread_mutex_t beginning = PTHREAD_MUTEX_INITIALIZER;
    const struct bfc_process *process = bfc_process_if_made();
    if (!process || !process->options.record[0])
        return false;
    if (UNLIKELY(bfc_load_acquire(&recording) == NOT_BEGUN || !slots)) {
        int reason = errno, cancel = bfc_cancel_disable();
        pthread_mutex_lock(&beginning);
        if (recording == NOT_BEGUN)
            begin_trace(process->options.record);
        pthread_mutex_unlock(&beginning);
        bfc_cancel_restore(cancel);
        errno = reason;
    }
    return bfc_load_acquire(&recording) == RECORDING;
}

/* Writes the records that are still in memory at the process's exit. It is a destructor, since
 * destructors run after the program's own exit handlers, whose frees are recorded, too. */
__attribute__((destructor)) static void finish(void) {
    if (bfc_process_if_made() && bfc_load_acquire(&recording) == RECORDING) {
        int cancel = bfc_cancel_disable();
        write_buffers(true);
        bfc_cancel_restore(cancel);
        bfc_store_release(&recording, ENDED);
    }
}

/* Waits, without `lock`, until the writing thread has written one of the full buffers. False: no
 * buffer became free within a second. After that no thread waits until a buffer has become free, so
 * that a disk that hangs delays the program only once. */
static NOINLINE bool wait_for_buffer(void) {
    for (int i = 0; i < MOST_NAPS && !gave_up && filling - writing >= BUFFERS; i++) {
        pool_unlock(&lock);
        bfc_nap(NAP_NS);
        pool_lock(&lock);
    }
    gave_up = filling - writing >= BUFFERS;
    return !gave_up;
}

/* Ends a change of the buffers: releases the lock, and wakes the writing thread if it has a full
 * buffer to write. */
static void unlock_and_wake(bool full) {
    pool_unlock(&lock);
    if (full) {
        bfc_add_fetch_release(&wakes, 1);
        syscall(SYS_futex, &wakes, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    }
}

/* Adds a record to the buffer that is being filled. Returns whether the record has filled it. The
 * caller holds `lock`. */
static bool put_record(struct bfc_trace_record record) {
    record.sequence = sequence++;
    if (UNLIKELY(filling - writing >= BUFFERS) && !wait_for_buffer())
        return false;
    uint32_t i = filling % BUFFERS;
    if (!thread_number)
        thread_number = ++threads;
    record.thread = thread_number - 1;
    buffers[i][counts[i]++] = record;
    if (counts[i] < RECORDS)
        return false;
    filling++;
    return true;
}

static uint16_t current_device(void) {
    CUdevice device;
    return bfc_driver()->cuCtxGetDevice(&device) == CUDA_SUCCESS && device >= 0 ? (uint16_t)device
                                                                                : 0;
}

/* Numbers streams from 1 in the order in which they are first seen; 0 is the default stream.
 * Streams for which the table has no room share its last number. */
static uint32_t number_of(CUstream stream) {
    if (!stream)
        return 0;
    uint32_t i = 0;
    while (i < stream_count && streams[i] != stream)
        i++;
    if (i == stream_count && stream_count < STREAMS_MOST)
        streams[stream_count++] = stream;
    return i < STREAMS_MOST ? i + 1 : STREAMS_MOST;
}

void bfc_trace_stack(CUdeviceptr pointer, uint32_t site, double weight,
                     struct bfc_stack_tables (*tables)(void)) {
    bfc_store_release(&stacks_now, tables);
    stack.pointer = pointer;
    stack.site = site;
    stack.weight = weight;
}

/* Adds a record of the call stack that bfc_trace_stack has kept in this thread, if it was kept for
 * this block. The caller holds `lock`. Returns whether the record filled a buffer. */
static bool put_stack(CUdeviceptr pointer, uint64_t number) {
    CUdeviceptr sampled = stack.pointer;
    stack.pointer = 0;
    if (LIKELY(sampled != pointer))
        return false;
    return put_record(
        (struct bfc_trace_record){.op = BFC_TRACE_STACK,
                                  .serial = number,
                                  .bytes = (uint64_t)(stack.weight / BFC_TRACE_WEIGHT_UNIT),
                                  .stream = stack.site});
}

static uint16_t memory_of(CUdeviceptr pointer) {
    const struct bfc_arena *arena = bfc_arena_of(pointer);
    return arena && bfc_arena_is_host(arena) ? BFC_TRACE_HOST_MEMORY : BFC_TRACE_DEVICE_MEMORY;
}

void bfc_trace_allocation(CUdeviceptr pointer, size_t bytes) {
    if (!is_recording())
        return;
    struct bfc_trace_record record = {
        .op = BFC_TRACE_ALLOCATE,
        .bytes = bytes,
        .device = current_device(),
        .memory = memory_of(pointer),
    };
    pool_lock(&lock);
    record.serial = ++serial;
    set_serial(pointer, record.serial);
    bool full = put_record(record);
    full |= put_stack(pointer, record.serial);
    unlock_and_wake(full);
}

void bfc_trace_out_of_memory(size_t bytes) {
    if (!is_recording())
        return;
    struct bfc_trace_record record = {
        .op = BFC_TRACE_OUT_OF_MEMORY, .bytes = bytes, .device = current_device()};
    pool_lock(&lock);
    unlock_and_wake(put_record(record));
}

void bfc_trace_free(CUdeviceptr pointer, CUstream stream) {
    if (!pointer || !is_recording())
        return;
    struct bfc_trace_record record = {.op = BFC_TRACE_FREE};
    pool_lock(&lock);
    record.serial = take_serial(pointer);
    record.stream = record.serial ? number_of(stream) : 0;
    unlock_and_wake(record.serial && put_record(record));
}
