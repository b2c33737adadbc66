/*
 * dlsym, dlvsym and dlopen as a preloaded program calls them.
 *
 * What is not ours goes on by a jump: glibc then sees the program's own return address, from which
 * it tells the caller's scope (RTLD_NEXT, RTLD_DEFAULT) and its RUNPATH. Only a look-up that is
 * answered with a hook returns from here. Where each goes on to is found at its first call.
 *
 * The registers that carry arguments (rdi, rsi, rdx) are kept; none of the three takes more.
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

    /* The real function, or the next library's of this name that is preloaded too. */
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

    /* rax: a hook, or 0. `version` is in rdx; it and the name may be others afterwards. */
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
    .set    own_dlsym, dlsym /* local: no other library's dlsym can get in between */
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

    begin   dlvsym /* of interest: cu..., and dlsym */
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
    testq   %rdx, %rdx /* the version was taken away */
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
