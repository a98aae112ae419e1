/* SPDX-License-Identifier: Apache-2.0 */
/* through.S - the frame of through.h. The personality is told as a distance of 4 bytes (0x1b). */
    .text
    .p2align 4
    .globl rs_gloo_through
    .hidden rs_gloo_through
    .hidden rs_gloo_unwound
#if defined(__x86_64__)
    .type rs_gloo_through, @function
rs_gloo_through:
    .cfi_startproc
    .cfi_personality 0x1b, rs_gloo_unwound
    subq $8, %rsp
    .cfi_def_cfa_offset 16
    call *%rcx
    addq $8, %rsp
    .cfi_def_cfa_offset 8
    ret
    .cfi_endproc
    .size rs_gloo_through, .-rs_gloo_through
#elif defined(__aarch64__)
    .type rs_gloo_through, %function
rs_gloo_through:
    .cfi_startproc
    .cfi_personality 0x1b, rs_gloo_unwound
    stp x29, x30, [sp, #-16]!
    .cfi_def_cfa_offset 16
    .cfi_offset 29, -16
    .cfi_offset 30, -8
    mov x29, sp
    blr x3
    ldp x29, x30, [sp], #16
    .cfi_restore 30
    .cfi_restore 29
    .cfi_def_cfa_offset 0
    ret
    .cfi_endproc
    .size rs_gloo_through, .-rs_gloo_through
#else
#error "rs_gloo_through is written for x86-64 and aarch64"
#endif
    .section .note.GNU-stack, "", %progbits
