/*
 * dlsym, dlvsym and dlopen as a preloaded program calls them, for AArch64.
 *
 * A call that is not ours to answer branches to the real function and leaves the link register
 * alone, so that glibc sees the program's own return address, from which it derives the caller's
 * scope (RTLD_NEXT, RTLD_DEFAULT) and RUNPATH. Only a look-up that bfc_resolve answers returns from
 * here. Each thunk finds its real function when it is first called.
 *
 * The registers that carry arguments (x0, x1, x2) are kept; none of the three functions takes more
 * than three arguments.
 */
    .macro  keep_arguments
    stp     x29, x30, [sp, #-48]!
    .cfi_adjust_cfa_offset 48
    .cfi_rel_offset x29, 0
    .cfi_rel_offset x30, 8
    stp     x0, x1, [sp, #16]
    str     x2, [sp, #32]
    mov     x29, sp
    .endm

    /* The called function's result moves to x16. */
    .macro  restore_arguments
    mov     x16, x0
    ldp     x0, x1, [sp, #16]
    ldr     x2, [sp, #32]
    ldp     x29, x30, [sp], #48
    .cfi_adjust_cfa_offset -48
    .cfi_restore x29
    .cfi_restore x30
    .endm

    .macro  begin name
    .globl  \name
    .type   \name, %function
    .align  2
\name:
    .cfi_startproc
    hint    #34 /* bti c */
    .endm

    /* Jumps to the function of this name after ours: another preloaded library's, or the real. */
    .macro  go_on name
    adrp    x17, next_\name
    ldr     x16, [x17, #:lo12:next_\name]
    cbnz    x16, 9f
    keep_arguments
    adrp    x0, name_\name
    add     x0, x0, #:lo12:name_\name
    bl      bfc_next_function
    restore_arguments
    adrp    x17, next_\name
    str     x16, [x17, #:lo12:next_\name]
9:  br      x16
    .cfi_endproc
    .size   \name, .-\name

    .local  next_\name
    .comm   next_\name, 8, 8
    .section .rodata.str1.1, "aMS", %progbits, 1
name_\name:
    .asciz  "\name"
    .text
    .endm

    /* Returns the answer of bfc_resolve to the program, or else continues at 1. The name in x1 and
     * the version in x2 may change. */
    .macro  ask_for_hook
    keep_arguments
    add     x1, sp, #24
    add     x2, sp, #32
    mov     x3, x30
    adrp    x4, own_dlsym
    add     x4, x4, #:lo12:own_dlsym
    bl      bfc_resolve
    restore_arguments
    cbz     x16, 1f
    mov     x0, x16
    ret
    .endm

    .text
    .set    own_dlsym, dlsym /* a local symbol, which no other library's dlsym replaces */
    begin   dlsym
    cbz     x1, 1f
    ldrb    w16, [x1]
    cmp     w16, #'c'
    b.ne    1f
    ldrb    w16, [x1, #1]
    cmp     w16, #'u'
    b.ne    1f
    mov     x2, xzr
    ask_for_hook
1:
.Lgo_on_to_dlsym:
    go_on   dlsym

    begin   dlvsym /* asks bfc_resolve about names that begin with cu or dls */
    cbz     x1, 4f
    cbz     x2, 4f
    ldrb    w16, [x1]
    cmp     w16, #'c'
    b.eq    3f
    cmp     w16, #'d'
    b.ne    4f
    ldrb    w16, [x1, #1]
    cmp     w16, #'l'
    b.ne    4f
    ldrb    w16, [x1, #2]
    cmp     w16, #'s'
    b.ne    4f
2:  ask_for_hook
1:  cbz     x2, .Lgo_on_to_dlsym /* bfc_resolve has cleared the version */
    b       4f
3:  ldrb    w16, [x1, #1]
    cmp     w16, #'u'
    b.eq    2b
4:  go_on   dlvsym

    begin   dlopen
    adrp    x17, bfc_loads
    add     x17, x17, #:lo12:bfc_loads
8:  ldxr    x16, [x17]
    add     x16, x16, #1
    stxr    w15, x16, [x17]
    cbnz    w15, 8b
    tbz     w1, #3, 1f /* RTLD_DEEPBIND */
    keep_arguments
    bl      bfc_dlopen_mode
    restore_arguments
    mov     w1, w16
1:  go_on   dlopen

    .section .note.GNU-stack, "", %progbits
