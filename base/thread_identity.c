#include "base/thread_identity.h"

__thread char bfc_thread_mark INITIAL_EXEC;
