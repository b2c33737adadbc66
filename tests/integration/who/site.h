/* Functions whose names are looked for in call stacks. */
#ifndef TESTS_WHO_SITE_H
#define TESTS_WHO_SITE_H

/* It is neither inlined nor copied under another name. */
#ifdef __clang__
#define SITE __attribute__((noinline))
#else
#define SITE __attribute__((noinline, noclone))
#endif

#endif
