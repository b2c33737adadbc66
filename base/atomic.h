/*
 * Atomic operations on plain variables, with the memory order in their names: relaxed, acquire,
 * release, acq_rel, seq_cst, as the C standard defines them (C11, 7.17.3). Each takes the
 * variable's address; the variable is any integer, bool or pointer of at most eight bytes. They are
 * the compiler's built-in functions, so that a struct in memory shared with other processes needs
 * no atomic types.
 *
 * fetch_... returns the value before the operation, ..._fetch the value after it. compare_exchange
 * returns true if the variable was equal to `*expected` and is `desired` now; otherwise `*expected`
 * is set to the variable's value.
 */
#ifndef BFC_BASE_ATOMIC_H
#define BFC_BASE_ATOMIC_H

#include <stdint.h>

#define bfc_load_relaxed(at) __atomic_load_n(at, __ATOMIC_RELAXED)
#define bfc_load_acquire(at) __atomic_load_n(at, __ATOMIC_ACQUIRE)
#define bfc_load_seq_cst(at) __atomic_load_n(at, __ATOMIC_SEQ_CST)

#define bfc_store_relaxed(at, value) __atomic_store_n(at, value, __ATOMIC_RELAXED)
#define bfc_store_release(at, value) __atomic_store_n(at, value, __ATOMIC_RELEASE)
#define bfc_store_seq_cst(at, value) __atomic_store_n(at, value, __ATOMIC_SEQ_CST)

#define bfc_exchange_relaxed(at, value) __atomic_exchange_n(at, value, __ATOMIC_RELAXED)
#define bfc_exchange_acquire(at, value) __atomic_exchange_n(at, value, __ATOMIC_ACQUIRE)
#define bfc_exchange_acq_rel(at, value) __atomic_exchange_n(at, value, __ATOMIC_ACQ_REL)
#define bfc_exchange_seq_cst(at, value) __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST)

#define bfc_fetch_add_relaxed(at, value) __atomic_fetch_add(at, value, __ATOMIC_RELAXED)
#define bfc_fetch_add_release(at, value) __atomic_fetch_add(at, value, __ATOMIC_RELEASE)
#define bfc_fetch_add_acq_rel(at, value) __atomic_fetch_add(at, value, __ATOMIC_ACQ_REL)
#define bfc_fetch_add_seq_cst(at, value) __atomic_fetch_add(at, value, __ATOMIC_SEQ_CST)
#define bfc_fetch_sub_relaxed(at, value) __atomic_fetch_sub(at, value, __ATOMIC_RELAXED)
#define bfc_fetch_sub_release(at, value) __atomic_fetch_sub(at, value, __ATOMIC_RELEASE)
#define bfc_fetch_sub_seq_cst(at, value) __atomic_fetch_sub(at, value, __ATOMIC_SEQ_CST)
#define bfc_fetch_or_seq_cst(at, value) __atomic_fetch_or(at, value, __ATOMIC_SEQ_CST)
#define bfc_fetch_and_release(at, value) __atomic_fetch_and(at, value, __ATOMIC_RELEASE)
#define bfc_fetch_and_seq_cst(at, value) __atomic_fetch_and(at, value, __ATOMIC_SEQ_CST)

#define bfc_add_fetch_relaxed(at, value) __atomic_add_fetch(at, value, __ATOMIC_RELAXED)
#define bfc_add_fetch_release(at, value) __atomic_add_fetch(at, value, __ATOMIC_RELEASE)
#define bfc_add_fetch_acq_rel(at, value) __atomic_add_fetch(at, value, __ATOMIC_ACQ_REL)
#define bfc_sub_fetch_acq_rel(at, value) __atomic_sub_fetch(at, value, __ATOMIC_ACQ_REL)

#define bfc_compare_exchange_relaxed(at, expected, desired)                                        \
    __atomic_compare_exchange_n(at, expected, desired, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)
#define bfc_compare_exchange_acquire(at, expected, desired)                                        \
    __atomic_compare_exchange_n(at, expected, desired, 0, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)
#define bfc_compare_exchange_acq_rel(at, expected, desired)                                        \
    __atomic_compare_exchange_n(at, expected, desired, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)
#define bfc_compare_exchange_seq_cst(at, expected, desired)                                        \
    __atomic_compare_exchange_n(at, expected, desired, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)

/* Orders the atomic operations before it and after it, as a C11 fence does. It is named barrier
 * because in this project a fence is a number that tells when work on the device is complete. */
#define bfc_barrier_acquire() __atomic_thread_fence(__ATOMIC_ACQUIRE)
#define bfc_barrier_release() __atomic_thread_fence(__ATOMIC_RELEASE)

/*
 * Adds to a 64-bit variable that only the calling thread writes, in one instruction: if a signal
 * handler of that thread adds to it too, no addition is lost, and other threads never read a torn
 * value. On x86-64 the instruction has no lock prefix, and takes effect after all earlier stores.
 */
#if defined __x86_64__ && !defined __SANITIZE_THREAD__
#define bfc_add_own(at, value)                                                                     \
    __asm__ volatile("addq %1, %0" : "+m"(*(at)) : "er"((uint64_t)(value)) : "memory", "cc")
#else
#define bfc_add_own(at, value) ((void)__atomic_fetch_add(at, value, __ATOMIC_RELEASE))
#endif

/* Keeps the compiler, but not the processor, from reordering operations across this point. */
#define bfc_barrier_compiler() __atomic_signal_fence(__ATOMIC_SEQ_CST)

#endif
