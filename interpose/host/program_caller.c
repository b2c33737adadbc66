/* Defines the thread-local variable of program_caller.h. */
#include "interpose/host/program_caller.h"

__thread uint64_t bfc_program_caller INITIAL_EXEC;
