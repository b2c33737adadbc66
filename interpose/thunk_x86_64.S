/*
 * The dlsym that a preloaded program calls.
 *
 * A name that does not begin with "cu", or that we have no hook for, goes on by a jump: glibc then sees
 * the program's own return address, from which it tells the caller's scope (RTLD_NEXT, RTLD_DEFAULT).
 * Only for a name of ours does anything return from here.
 *
 * In: rdi handle, rsi name, as for dlsym. All registers that carry arguments are kept.
 */
    .text
    .globl  dlsym
    .type   dlsym, @function
dlsym:
    .cfi_startproc
    endbr64
    testq   %rsi, %rsi
    jz      1f
    cmpb    $'c', (%rsi)
    jne     1f
    cmpb    $'u', 1(%rsi)
    jne     1f
    pushq   %rdi
    .cfi_adjust_cfa_offset 8
    pushq   %rsi
    .cfi_adjust_cfa_offset 8
    subq    $8, %rsp
    .cfi_adjust_cfa_offset 8
    call    bfc_resolve
    addq    $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq    %rsi
    .cfi_adjust_cfa_offset -8
    popq    %rdi
    .cfi_adjust_cfa_offset -8
    testq   %rax, %rax
    jz      1f
    ret
1:  movq    bfc_next_dlsym(%rip), %rax
    testq   %rax, %rax
    jz      2f
    jmp     *%rax

    /* The first call: find the real one, then go on as above. */
2:  pushq   %rdi
    .cfi_adjust_cfa_offset 8
    pushq   %rsi
    .cfi_adjust_cfa_offset 8
    subq    $8, %rsp
    .cfi_adjust_cfa_offset 8
    call    bfc_real_dlsym
    addq    $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq    %rsi
    .cfi_adjust_cfa_offset -8
    popq    %rdi
    .cfi_adjust_cfa_offset -8
    movq    %rax, bfc_next_dlsym(%rip)
    jmp     *%rax
    .cfi_endproc
    .size   dlsym, .-dlsym

    .local  bfc_next_dlsym
    .comm   bfc_next_dlsym, 8, 8

    .section .note.GNU-stack, "", @progbits
