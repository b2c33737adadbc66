/*
 * Atomic operations on plain variables. The end of a name is the memory order, as the C standard
 * defines it (C11, 7.17.3): relaxed, acquire, release, acq_rel or seq_cst. Each takes the
 * variable's address; the variable is an integer, bool or pointer of at most eight bytes. The
 * operations are the compiler's built-in functions and not C11's, which take atomic types: so
 * structs in memory that processes share can have plain members.
 *
 * fetch_... returns the value before the operation, ..._fetch the value after it. compare_exchange
 * stores `desired` and returns true if the variable equals `*expected`; otherwise it sets
 * `*expected` to the variable's value and returns false.
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

/* A C11 fence (atomic_thread_fence). It is named barrier because in this project a fence is a
 * number that tells when work on the device is complete. */
#define bfc_barrier_acquire() __atomic_thread_fence(__ATOMIC_ACQUIRE)
#define bfc_barrier_release() __atomic_thread_fence(__ATOMIC_RELEASE)

/*
 * Adds to a 64-bit variable that only the calling thread writes. It is one instruction, so no
 * addition is lost if a signal handler of that thread adds to the variable too, and no other thread
 * reads a torn value. Other threads see the addition after all earlier stores of this thread. On
 * x86-64 that needs no lock prefix.
 */
#if defined __x86_64__ && !defined __SANITIZE_THREAD__
#define bfc_add_own(at, value)                                                                     \
    __asm__ volatile("addq %1, %0" : "+m"(*(at)) : "er"((uint64_t)(value)) : "memory", "cc")
#else
#define bfc_add_own(at, value) ((void)__atomic_fetch_add(at, value, __ATOMIC_RELEASE))
#endif

/*
 * Adds to a 64-bit variable that no other thread writes meanwhile, such as one that a lock guards.
 * Other threads may read it without that lock: they never read a torn value, and see the addition
 * after all earlier stores of this thread. Unlike with bfc_add_own, what a signal handler of the
 * same thread adds meanwhile may be lost.
 */
#if defined __x86_64__ && !defined __SANITIZE_THREAD__
#define bfc_add_alone(at, value) bfc_add_own(at, value)
#else
#define bfc_add_alone(at, value) bfc_store_release(at, bfc_load_relaxed(at) + (value))
#endif

/* Keeps the compiler, but not the processor, from reordering operations across this point. */
#define bfc_barrier_compiler() __atomic_signal_fence(__ATOMIC_SEQ_CST)

#endif
