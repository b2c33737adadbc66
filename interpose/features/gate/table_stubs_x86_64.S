/*
 * The entries of a copied table (unknown_tables.c). A stub tells its place by its call. All registers
 * that may carry an argument are kept, also rax, which says how many vector registers do; the stack
 * holds what it held, but for the return address, which unknown_tables.c replaces.
 */
    .text
    .balign 16
    .hidden bfc_table_stubs
    .globl  bfc_table_stubs
bfc_table_stubs:
    .rept   512
    endbr64
    call    enter_table_call
    .balign 16
    .endr
enter_table_call:
    push    %rbp
    mov     %rsp, %rbp
    sub     $200, %rsp
    mov     %rdi, (%rsp)
    mov     %rsi, 8(%rsp)
    mov     %rdx, 16(%rsp)
    mov     %rcx, 24(%rsp)
    mov     %r8, 32(%rsp)
    mov     %r9, 40(%rsp)
    mov     %rax, 48(%rsp)
    mov     %r10, 56(%rsp)
    movups  %xmm0, 64(%rsp)
    movups  %xmm1, 80(%rsp)
    movups  %xmm2, 96(%rsp)
    movups  %xmm3, 112(%rsp)
    movups  %xmm4, 128(%rsp)
    movups  %xmm5, 144(%rsp)
    movups  %xmm6, 160(%rsp)
    movups  %xmm7, 176(%rsp)
    mov     8(%rbp), %rdi
    lea     16(%rbp), %rsi
    lea     24(%rbp), %rdx
    call    *bfc_table_calls(%rip)
    mov     %rax, %r11
    mov     (%rsp), %rdi
    mov     8(%rsp), %rsi
    mov     16(%rsp), %rdx
    mov     24(%rsp), %rcx
    mov     32(%rsp), %r8
    mov     40(%rsp), %r9
    mov     48(%rsp), %rax
    mov     56(%rsp), %r10
    movups  64(%rsp), %xmm0
    movups  80(%rsp), %xmm1
    movups  96(%rsp), %xmm2
    movups  112(%rsp), %xmm3
    movups  128(%rsp), %xmm4
    movups  144(%rsp), %xmm5
    movups  160(%rsp), %xmm6
    movups  176(%rsp), %xmm7
    leave
    add     $8, %rsp
    jmp     *%r11
    .hidden bfc_table_call_returns
    .globl  bfc_table_call_returns
    .balign 16
bfc_table_call_returns:
    endbr64
    sub     $48, %rsp
    mov     %rax, (%rsp)
    mov     %rdx, 8(%rsp)
    movups  %xmm0, 16(%rsp)
    movups  %xmm1, 32(%rsp)
    lea     48(%rsp), %rdi
    call    *bfc_table_calls+8(%rip)
    mov     %rax, %r11
    mov     (%rsp), %rax
    mov     8(%rsp), %rdx
    movups  16(%rsp), %xmm0
    movups  32(%rsp), %xmm1
    add     $48, %rsp
    jmp     *%r11

    .bss
    .balign 8
    .hidden bfc_table_calls
    .globl  bfc_table_calls
bfc_table_calls:
    .zero   16

    .section .note.GNU-stack, "", @progbits
