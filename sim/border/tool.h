// Profilers: cuInit loads the library that CUDA_INJECTION64_PATH names and calls its
// InitializeInjection, and a function of theirs is told of each call before the call begins.
#ifndef SIM_TOOL_H
#define SIM_TOOL_H

// What stands in for CUPTI looks this up. Without the lock, in the caller's thread.
__attribute__((visibility("default"))) void sim_tool_watch(void (*told)(const char *name));

void sim_tool_tell(const char *name);
void sim_tool_inject(void); // at the first call; without the lock

#endif
