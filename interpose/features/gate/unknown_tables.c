/*
 * The tables that cuGetExportTable gives hold functions whose parameters nobody documents. So an
 * entry of our copy leaves every register that can carry an argument, and the stack, as they are.
 * It replaces only the return address, by one of ours, to learn when the function returns. The true
 * return address is kept in `thread`. A function may be left by longjmp, but not by a C++
 * exception, since the stack cannot be unwound past our address.
 */
#include "interpose/features/gate/unknown_tables.h"

#include <cuda.h>
#include <link.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"
#include "interpose/driver/driver.h"
#include "interpose/table/counter.h"

enum {
    ENTRIES_MOST = 512, /* most functions, of all tables together; table_stubs_*.S has as many */
    TABLES_MOST = 32,
    NESTED_MOST = 4, /* how deep calls of the tables' functions may nest in a thread */
    STUB_BYTES = 16,
};

struct call {
    void *return_address;
    const void *stack; /* the stack pointer after the call has returned */
    uint64_t end;      /* to be passed to bfc_submission_end */
};

static __thread INITIAL_EXEC struct {
    struct call calls[NESTED_MOST];
    unsigned depth;
    CUresult refused; /* what refuse_call returns */
} thread;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the variables below */
static struct table {
    const void *const *theirs;
    const void **ours; /* our copy of the table, in `words` */
} tables[TABLES_MOST];
static size_t table_count, word_count;
static const void *words[ENTRIES_MOST + TABLES_MOST]; /* our copies of the tables, end to end */
static void *functions[ENTRIES_MOST];                 /* the driver's function for each stub */
static size_t function_count;

/* The stubs in table_stubs_*.S call the two functions of bfc_table_calls. `begin` returns the
 * driver's function, to which the stub then jumps. `end` is called when that function has returned,
 * and gives the true return address. */
HIDDEN extern const char bfc_table_stubs[];
HIDDEN void bfc_table_call_returns(void);
HIDDEN extern struct {
    void *(*begin)(const char *stub, void **return_address, const void *stack);
    void *(*end)(const void *stack);
} bfc_table_calls;

/* Whether the processor keeps a second stack of return addresses (a shadow stack), so that it would
 * end the process if a return address was changed. */
static bool has_shadow_stack(void) {
    uint64_t pointer = 0;
#ifdef __x86_64__
    __asm__ volatile("rdsspq %0" : "+r"(pointer)); /* stays 0 without a shadow stack */
#endif
    return pointer != 0;
}

/* Takes the place of the driver's function when the memory that it may use is asleep and cannot be
 * woken. */
static CUresult refuse_call(void) {
    return thread.refused;
}

static void *begin_call(const char *stub, void **return_address, const void *stack) {
    void *function = functions[(size_t)(stub - bfc_table_stubs) / STUB_BYTES];
    uint64_t end;
    if (thread.depth == NESTED_MOST) { /* thread.calls is full: this call's end would be missed */
        bfc_counter->hide("functions of an unknown table call each other");
        return function;
    }
    thread.refused = bfc_submission_begin((CUstream)BFC_STREAMS_UNKNOWN, false, &end);
    unsigned place = thread.depth++;
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* a signal handler must not reuse `place` */
    thread.calls[place] = (struct call){*return_address, stack, end};
    void (*returns)(void) = bfc_table_call_returns;
    memcpy(return_address, &returns, sizeof returns);
    CUresult (*refuse)(void) = refuse_call;
    if (thread.refused != CUDA_SUCCESS)
        memcpy(&function, &refuse, sizeof refuse);
    return function;
}

/* Removes from thread.calls the call that returns now, and those above it, which the program left
 * by longjmp: they count as ended, too. */
static void *end_call(const void *stack) {
    struct call call;
    do {
        call = thread.calls[thread.depth - 1];
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        thread.depth--;
        bfc_submission_end(call.end);
    } while (call.stack != stack && thread.depth);
    return call.return_address;
}

struct within {
    uintptr_t address;
    bool is_code;
};

static int find_code(struct dl_phdr_info *object, size_t size, void *looked_for) {
    struct within *within = looked_for;
    (void)size;
    for (int i = 0; i < object->dlpi_phnum && !within->is_code; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        within->is_code = part->p_type == PT_LOAD && (part->p_flags & PF_X) &&
                          within->address - (object->dlpi_addr + part->p_vaddr) < part->p_memsz;
    }
    return within->is_code;
}

static bool is_code(const void *address) {
    struct within within = {(uintptr_t)address, false};
    dl_iterate_phdr(find_code, &within);
    return within.is_code;
}

/* Returns how many words the table has, with the first, which is its size in bytes. 0: the table
 * has another form, or is too large. */
static size_t count_words(const void *const *table) {
    uintptr_t bytes = (uintptr_t)table[0];
    if (bytes % sizeof *table || bytes / sizeof *table < 2 || bytes / sizeof *table > ENTRIES_MOST)
        return 0;
    for (size_t i = 1; i < bytes / sizeof *table; i++)
        if (table[i] && !is_code(table[i]))
            return 0;
    return bytes / sizeof *table;
}

static const void **add_copy(const void *const *theirs, size_t count) {
    if (!count || table_count == TABLES_MOST || function_count + count - 1 > ENTRIES_MOST)
        return NULL;
    bfc_table_calls.begin = begin_call;
    bfc_table_calls.end = end_call;
    const void **ours = words + word_count;
    ours[0] = theirs[0];
    for (size_t i = 1; i < count; i++) {
        ours[i] = theirs[i] ? bfc_table_stubs + function_count * STUB_BYTES : NULL;
        memcpy(&functions[function_count++], &theirs[i], sizeof theirs[i]);
    }
    word_count += count;
    tables[table_count++] = (struct table){theirs, ours};
    return ours;
}

bool bfc_unknown_table_copy(const void **table) {
    const void *const *theirs = *table;
    const void **ours = NULL;
    if (has_shadow_stack())
        return false;
    size_t count = count_words(theirs);
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < table_count && !ours; i++)
        ours = tables[i].theirs == theirs ? tables[i].ours : NULL;
    if (!ours)
        ours = add_copy(theirs, count);
    pthread_mutex_unlock(&lock);
    *table = ours ? ours : *table;
    return ours != NULL;
}
