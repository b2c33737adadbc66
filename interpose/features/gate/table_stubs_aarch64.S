/*
 * The entries of a copied table (unknown_tables.c). A stub tells its place in x17; the return address
 * comes in x30. All registers that may carry an argument are kept, also x8.
 */
    .text
    .balign 16
    .hidden bfc_table_stubs
    .globl  bfc_table_stubs
bfc_table_stubs:
    .rept   512
    hint    #34
    adr     x17, .
    b       enter_table_call
    nop
    .endr
enter_table_call:
    sub     sp, sp, #224
    stp     x0, x1, [sp]
    stp     x2, x3, [sp, #16]
    stp     x4, x5, [sp, #32]
    stp     x6, x7, [sp, #48]
    stp     x8, x30, [sp, #64]
    stp     q0, q1, [sp, #80]
    stp     q2, q3, [sp, #112]
    stp     q4, q5, [sp, #144]
    stp     q6, q7, [sp, #176]
    mov     x0, x17
    add     x1, sp, #72
    add     x2, sp, #224
    adrp    x16, bfc_table_calls
    ldr     x16, [x16, #:lo12:bfc_table_calls]
    blr     x16
    mov     x16, x0
    ldp     x0, x1, [sp]
    ldp     x2, x3, [sp, #16]
    ldp     x4, x5, [sp, #32]
    ldp     x6, x7, [sp, #48]
    ldp     x8, x30, [sp, #64]
    ldp     q0, q1, [sp, #80]
    ldp     q2, q3, [sp, #112]
    ldp     q4, q5, [sp, #144]
    ldp     q6, q7, [sp, #176]
    add     sp, sp, #224
    br      x16
    .hidden bfc_table_call_returns
    .globl  bfc_table_call_returns
bfc_table_call_returns:
    hint    #36
    sub     sp, sp, #80
    stp     x0, x1, [sp]
    stp     q0, q1, [sp, #16]
    stp     q2, q3, [sp, #48]
    add     x0, sp, #80
    adrp    x16, bfc_table_calls
    add     x16, x16, #:lo12:bfc_table_calls
    ldr     x16, [x16, #8]
    blr     x16
    mov     x30, x0
    ldp     x0, x1, [sp]
    ldp     q0, q1, [sp, #16]
    ldp     q2, q3, [sp, #48]
    add     sp, sp, #80
    ret

    .bss
    .balign 8
    .hidden bfc_table_calls
    .globl  bfc_table_calls
bfc_table_calls:
    .zero   16

    .section .note.GNU-stack, "", %progbits
