/*
 * The driver's functions behind such a table have parameters that nobody documents. So an entry of
 * the copy keeps every register that can carry an argument, and the stack as it is, and puts an
 * address of ours in place of the return address: that way it learns when the function returns. The
 * true return address is kept on a small stack of the thread.
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
    ENTRIES_MOST = 512, /* of all tables; as many as there are stubs in the assembly below */
    TABLES_MOST = 16,
    NESTED_MOST = 8, /* calls of such functions under way in a thread */
    STUB_BYTES = 16,
};

struct call {
    void *return_address;
    uint64_t end; /* for bfc_submission_end */
};

static __thread INITIAL_EXEC struct {
    struct call calls[NESTED_MOST];
    unsigned depth;
    CUresult refused; /* what refuse_call returns */
} thread;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the variables below */
static struct table {
    const void *const *theirs;
    const void **ours; /* its place in `words` */
} tables[TABLES_MOST];
static size_t table_count, word_count;
static const void *words[ENTRIES_MOST + TABLES_MOST]; /* the copies, one after the other */
static void *functions[ENTRIES_MOST]; /* the driver's, by the number of the stub that calls each */
static size_t function_count;

#if defined __x86_64__ || defined __aarch64__

HIDDEN extern char bfc_table_stubs[];
HIDDEN void bfc_table_call_returns(void);
HIDDEN __attribute__((used)) void *bfc_table_call_begin(const char *stub, void **return_address);
HIDDEN __attribute__((used)) void *bfc_table_call_end(void);

#if defined __x86_64__

/* A stub pushes its own place, by its call. Every register that may carry an argument is kept: also
 * rax, which tells how many vector registers do, and r10. */
__asm__(".pushsection .text\n"
        ".balign 16\n"
        ".hidden bfc_table_stubs\n"
        ".globl bfc_table_stubs\n"
        "bfc_table_stubs:\n"
        ".rept 512\n"
        "  endbr64\n"
        "  call enter_table_call\n"
        "  .balign 16\n"
        ".endr\n"
        "enter_table_call:\n"
        "  push %rbp\n"
        "  mov %rsp, %rbp\n"
        "  sub $200, %rsp\n"
        "  mov %rdi, (%rsp)\n"
        "  mov %rsi, 8(%rsp)\n"
        "  mov %rdx, 16(%rsp)\n"
        "  mov %rcx, 24(%rsp)\n"
        "  mov %r8, 32(%rsp)\n"
        "  mov %r9, 40(%rsp)\n"
        "  mov %rax, 48(%rsp)\n"
        "  mov %r10, 56(%rsp)\n"
        "  movups %xmm0, 64(%rsp)\n"
        "  movups %xmm1, 80(%rsp)\n"
        "  movups %xmm2, 96(%rsp)\n"
        "  movups %xmm3, 112(%rsp)\n"
        "  movups %xmm4, 128(%rsp)\n"
        "  movups %xmm5, 144(%rsp)\n"
        "  movups %xmm6, 160(%rsp)\n"
        "  movups %xmm7, 176(%rsp)\n"
        "  mov 8(%rbp), %rdi\n"
        "  lea 16(%rbp), %rsi\n"
        "  call bfc_table_call_begin\n"
        "  mov %rax, %r11\n"
        "  mov (%rsp), %rdi\n"
        "  mov 8(%rsp), %rsi\n"
        "  mov 16(%rsp), %rdx\n"
        "  mov 24(%rsp), %rcx\n"
        "  mov 32(%rsp), %r8\n"
        "  mov 40(%rsp), %r9\n"
        "  mov 48(%rsp), %rax\n"
        "  mov 56(%rsp), %r10\n"
        "  movups 64(%rsp), %xmm0\n"
        "  movups 80(%rsp), %xmm1\n"
        "  movups 96(%rsp), %xmm2\n"
        "  movups 112(%rsp), %xmm3\n"
        "  movups 128(%rsp), %xmm4\n"
        "  movups 144(%rsp), %xmm5\n"
        "  movups 160(%rsp), %xmm6\n"
        "  movups 176(%rsp), %xmm7\n"
        "  leave\n"
        "  add $8, %rsp\n"
        "  jmp *%r11\n"
        ".hidden bfc_table_call_returns\n"
        ".globl bfc_table_call_returns\n"
        ".balign 16\n"
        "bfc_table_call_returns:\n"
        "  endbr64\n"
        "  sub $48, %rsp\n"
        "  mov %rax, (%rsp)\n"
        "  mov %rdx, 8(%rsp)\n"
        "  movups %xmm0, 16(%rsp)\n"
        "  movups %xmm1, 32(%rsp)\n"
        "  call bfc_table_call_end\n"
        "  mov %rax, %r11\n"
        "  mov (%rsp), %rax\n"
        "  mov 8(%rsp), %rdx\n"
        "  movups 16(%rsp), %xmm0\n"
        "  movups 32(%rsp), %xmm1\n"
        "  add $48, %rsp\n"
        "  jmp *%r11\n"
        ".popsection\n");

/* With a shadow stack a changed return address ends the process. */
static bool has_shadow_stack(void) {
    uint64_t pointer = 0;
    __asm__ volatile("rdsspq %0" : "+r"(pointer)); /* does nothing where there is none */
    return pointer != 0;
}

#else

/* The return address comes in x30; a stub hands over its own place in x17. */
__asm__(".pushsection .text\n"
        ".balign 16\n"
        ".hidden bfc_table_stubs\n"
        ".globl bfc_table_stubs\n"
        "bfc_table_stubs:\n"
        ".rept 512\n"
        "  hint #34\n"
        "  adr x17, .\n"
        "  b enter_table_call\n"
        "  nop\n"
        ".endr\n"
        "enter_table_call:\n"
        "  sub sp, sp, #224\n"
        "  stp x0, x1, [sp]\n"
        "  stp x2, x3, [sp, #16]\n"
        "  stp x4, x5, [sp, #32]\n"
        "  stp x6, x7, [sp, #48]\n"
        "  stp x8, x30, [sp, #64]\n"
        "  stp q0, q1, [sp, #80]\n"
        "  stp q2, q3, [sp, #112]\n"
        "  stp q4, q5, [sp, #144]\n"
        "  stp q6, q7, [sp, #176]\n"
        "  mov x0, x17\n"
        "  add x1, sp, #72\n"
        "  bl bfc_table_call_begin\n"
        "  mov x16, x0\n"
        "  ldp x0, x1, [sp]\n"
        "  ldp x2, x3, [sp, #16]\n"
        "  ldp x4, x5, [sp, #32]\n"
        "  ldp x6, x7, [sp, #48]\n"
        "  ldp x8, x30, [sp, #64]\n"
        "  ldp q0, q1, [sp, #80]\n"
        "  ldp q2, q3, [sp, #112]\n"
        "  ldp q4, q5, [sp, #144]\n"
        "  ldp q6, q7, [sp, #176]\n"
        "  add sp, sp, #224\n"
        "  br x16\n"
        ".hidden bfc_table_call_returns\n"
        ".globl bfc_table_call_returns\n"
        "bfc_table_call_returns:\n"
        "  hint #36\n"
        "  sub sp, sp, #80\n"
        "  stp x0, x1, [sp]\n"
        "  stp q0, q1, [sp, #16]\n"
        "  stp q2, q3, [sp, #48]\n"
        "  bl bfc_table_call_end\n"
        "  mov x30, x0\n"
        "  ldp x0, x1, [sp]\n"
        "  ldp q0, q1, [sp, #16]\n"
        "  ldp q2, q3, [sp, #48]\n"
        "  add sp, sp, #80\n"
        "  ret\n"
        ".popsection\n");

static bool has_shadow_stack(void) {
    return false;
}

#endif

/* Takes the place of the driver's function when the memory that it may use is asleep and cannot be
 * woken. */
static CUresult refuse_call(void) {
    return thread.refused;
}

void *bfc_table_call_begin(const char *stub, void **return_address) {
    void *function = functions[(size_t)(stub - bfc_table_stubs) / STUB_BYTES];
    uint64_t end;
    if (thread.depth == NESTED_MOST) { /* its end cannot be seen */
        bfc_counter->hide("functions of an unknown table call each other");
        return function;
    }
    thread.refused = bfc_submission_begin((CUstream)BFC_STREAMS_UNKNOWN, false, &end);
    thread.calls[thread.depth++] = (struct call){*return_address, end};
    void (*returns)(void) = bfc_table_call_returns;
    memcpy(return_address, &returns, sizeof returns);
    CUresult (*refuse)(void) = refuse_call;
    if (thread.refused != CUDA_SUCCESS)
        memcpy(&function, &refuse, sizeof refuse);
    return function;
}

void *bfc_table_call_end(void) {
    struct call call = thread.calls[--thread.depth];
    bfc_submission_end(call.end);
    return call.return_address;
}

/* ---- the copies ---- */

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

/* How many words the table has, its size included; 0: it is not of this shape. */
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

#else

bool bfc_unknown_table_copy(const void **table) {
    (void)table;
    return false;
}

#endif
