/* Handing over what an earlier allocation in another job waits for. */
#ifndef BFC_INTERPOSE_HAND_OVER_H
#define BFC_INTERPOSE_HAND_OVER_H

/*
 * After a free that natively waits, while one in another job waits (BFC_WAIT): if what this process
 * caches completes what that one waits for, it goes back to the driver at once, so that this
 * process's next allocation does not take it again. Only where this process would wait too, and
 * would stand behind that one then. May wait for the work of contexts, as a native free does.
 * Thread-safe.
 */
void bfc_hand_over(void);

#endif
