/* What the compiler is told beyond the language, by one name each. */
#ifndef BFC_BASE_COMPILER_H
#define BFC_BASE_COMPILER_H

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* Out of the caller's way: of a hot function, what it seldom does. */
#define NOINLINE __attribute__((noinline))
#define ALWAYS_INLINE inline __attribute__((always_inline))

/* Arguments from number `first` on are what the printf format, number `text`, says. */
#define PRINTF_LIKE(text, first) __attribute__((format(printf, text, first)))

/* A thread-local that a library which is loaded at the start reaches without a call. */
#define INITIAL_EXEC __attribute__((tls_model("initial-exec")))

#endif
