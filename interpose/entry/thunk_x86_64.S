/*
 * dlsym, dlvsym and dlopen as a preloaded program calls them.
 *
 * A call that is not ours to answer jumps to the real function, so that glibc sees the program's
 * own return address, from which it derives the caller's scope (RTLD_NEXT, RTLD_DEFAULT) and
 * RUNPATH. Only a look-up that bfc_resolve answers returns from here. Each thunk finds its real
 * function when it is first called.
 *
 * The registers that carry arguments (rdi, rsi, rdx) are kept; none of the three functions takes
 * more than three arguments.
 */
    .macro  keep_arguments /* leaves the stack aligned for a call, the return address at 24(%rsp) */
    pushq   %rdi
    .cfi_adjust_cfa_offset 8
    pushq   %rsi
    .cfi_adjust_cfa_offset 8
    pushq   %rdx
    .cfi_adjust_cfa_offset 8
    .endm

    .macro  restore_arguments
    popq    %rdx
    .cfi_adjust_cfa_offset -8
    popq    %rsi
    .cfi_adjust_cfa_offset -8
    popq    %rdi
    .cfi_adjust_cfa_offset -8
    .endm

    .macro  begin name
    .globl  \name
    .type   \name, @function
\name:
    .cfi_startproc
    endbr64
    .endm

    /* Jumps to the function of this name after ours: another preloaded library's, or the real. */
    .macro  go_on name
    movq    next_\name(%rip), %rax
    testq   %rax, %rax
    jnz     9f
    keep_arguments
    leaq    name_\name(%rip), %rdi
    call    bfc_next_function
    restore_arguments
    movq    %rax, next_\name(%rip)
9:  jmp     *%rax
    .cfi_endproc
    .size   \name, .-\name

    .local  next_\name
    .comm   next_\name, 8, 8
    .section .rodata.str1.1, "aMS", @progbits, 1
name_\name:
    .asciz  "\name"
    .text
    .endm

    /* Sets rax to the answer of bfc_resolve, or 0. The name in rsi and the version in rdx may
     * change. */
    .macro  ask_for_hook
    keep_arguments
    leaq    8(%rsp), %rsi
    movq    %rsp, %rdx
    movq    24(%rsp), %rcx
    leaq    own_dlsym(%rip), %r8
    call    bfc_resolve
    restore_arguments
    testq   %rax, %rax
    .endm

    .text
    .set    own_dlsym, dlsym /* a local symbol, which no other library's dlsym replaces */
    begin   dlsym
    testq   %rsi, %rsi
    jz      1f
    cmpb    $'c', (%rsi)
    jne     1f
    cmpb    $'u', 1(%rsi)
    jne     1f
    xorl    %edx, %edx
    ask_for_hook
    jz      1f
    ret
1:
.Lgo_on_to_dlsym:
    go_on   dlsym

    begin   dlvsym /* asks bfc_resolve about names that begin with cu or dls */
    testq   %rsi, %rsi
    jz      1f
    testq   %rdx, %rdx
    jz      1f
    cmpb    $'c', (%rsi)
    je      3f
    cmpb    $'d', (%rsi)
    jne     1f
    cmpb    $'l', 1(%rsi)
    jne     1f
    cmpb    $'s', 2(%rsi)
    jne     1f
2:  ask_for_hook
    jnz     4f
    testq   %rdx, %rdx /* bfc_resolve has cleared the version */
    jz      .Lgo_on_to_dlsym
    jmp     1f
4:  ret
3:  cmpb    $'u', 1(%rsi)
    je      2b
1:  go_on   dlvsym

    begin   dlopen
    lock incq bfc_loads(%rip)
    testl   $8, %esi /* RTLD_DEEPBIND */
    jz      1f
    keep_arguments
    call    bfc_dlopen_mode
    restore_arguments
    movl    %eax, %esi
1:  go_on   dlopen

    .section .note.GNU-stack, "", @progbits
