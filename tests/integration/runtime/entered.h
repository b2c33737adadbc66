// What the counting runtimes of this folder have beside a runtime's own functions.
#ifndef TESTS_RUNTIME_ENTERED_H
#define TESTS_RUNTIME_ENTERED_H

unsigned long cudaEntered(const char *name);

#endif
