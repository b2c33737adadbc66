"""Makes a driver that is older than CUDA 12.5 of the stand-in: it has no cuCtxRecordEvent. usage: older.py LIBRARY COPY"""

import sys

with open(sys.argv[1], "rb") as library, open(sys.argv[2], "wb") as copy:
    copy.write(library.read().replace(b"cuCtxRecordEvent\0", b"cuCtxRecordNever\0"))
