/* Compiler attributes, each under a name of its own. */
#ifndef BFC_BASE_COMPILER_H
#define BFC_BASE_COMPILER_H

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* Keeps the rare path of a hot function from being inlined into that function. */
#define NOINLINE __attribute__((noinline))
#define ALWAYS_INLINE inline __attribute__((always_inline))

/* Argument number `text` is a printf format; its arguments begin at number `first`. */
#define PRINTF_LIKE(text, first) __attribute__((format(printf, text, first)))

/* Makes a thread-local variable reachable without a call. This works only in a library that is
 * loaded when the program starts. */
#define INITIAL_EXEC __attribute__((tls_model("initial-exec")))

/*
 * A variable of the library's own. In the declaration that other files see, this lets the compiler
 * reach the variable directly; without it each use first loads the address from the global offset
 * table.
 */
#define HIDDEN __attribute__((visibility("hidden")))

/* Before a struct's name: threads that write what lies beside it do not slow those that read it. */
#define ON_LINES_OF_ITS_OWN __attribute__((aligned(64)))

/* Compiles a function without the sanitizers' checks, because a sanitizer's runtime calls it before
 * that runtime is ready. */
#define NO_SANITIZER __attribute__((no_sanitize("address", "thread", "undefined")))

/* Compiles a function without the thread sanitizer's checks, because it reads without a lock what
 * others write under one, and its result is only a hint that is checked under the lock. */
#define READS_WITHOUT_LOCK __attribute__((no_sanitize("thread")))

#endif
