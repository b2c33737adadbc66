/* Calls the at_exit function of every feature when the process exits. */
#include "interpose/config/process.h"
#include "interpose/table/feature.h"

__attribute__((destructor)) static void tell_features(void) {
    const struct bfc_process *process = bfc_process_if_made();
    if (process)
        BFC_TELL_FEATURES(at_exit, process);
}
