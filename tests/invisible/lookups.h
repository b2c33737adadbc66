// Asks dlsym and dlvsym for many names, through each kind of handle, and prints what comes.
#ifndef TESTS_INVISIBLE_LOOKUPS_H
#define TESTS_INVISIBLE_LOOKUPS_H

void lookups_show(const char *who);

#endif
