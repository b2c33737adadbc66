/* Compiler attributes, each under a name of its own. */
#ifndef BFC_BASE_COMPILER_H
#define BFC_BASE_COMPILER_H

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* Keeps a rarely used function from being inlined into a hot one. */
#define NOINLINE __attribute__((noinline))
#define ALWAYS_INLINE inline __attribute__((always_inline))

/* Declares that argument number `text` is a printf format, whose own arguments begin at number
 * `first`. */
#define PRINTF_LIKE(text, first) __attribute__((format(printf, text, first)))

/* Lets a thread-local variable be accessed without a function call. This works only in a library
 * that is loaded when the program starts. */
#define INITIAL_EXEC __attribute__((tls_model("initial-exec")))

/*
 * For a variable that the library does not export. In the declaration that other files see, this
 * lets the compiler access the variable directly; without it each use first loads the address from
 * the global offset table.
 */
#define HIDDEN __attribute__((visibility("hidden")))

/* Before a struct's name: puts it on cache lines of its own, so that writes to neighbouring
 * variables do not slow its readers. */
#define ON_LINES_OF_ITS_OWN __attribute__((aligned(64)))

/* Compiles a function without the sanitizers' checks. For functions that a sanitizer's runtime
 * calls before it has initialised itself: a check at that time could crash. */
#define NO_SANITIZER __attribute__((no_sanitize("address", "thread", "undefined")))

/* Compiles a function without the thread sanitizer's checks. For functions that read, without a
 * lock, data that other threads change under a lock, to get a hint that is checked under the lock
 * later. */
#define READS_WITHOUT_LOCK __attribute__((no_sanitize("thread")))

#endif
