// Asks dlsym and dlvsym for many names, through each kind of handle, and prints what comes.
#ifndef TESTS_INVISIBLE_ASK_H
#define TESTS_INVISIBLE_ASK_H

void lookups_show(const char *who);

#endif
