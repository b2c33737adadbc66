/* Where the program's call came from. */
#include "interpose/host/program_caller.h"

__thread uint64_t bfc_program_caller INITIAL_EXEC;
