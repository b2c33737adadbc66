"""Plans that are changed and have the checksum that their contents have (layout/plan.h)."""
import struct

CHECKSUM, ARENAS_AT, ARENAS = 16, 80, 104
MASK = 2**64 - 1


def mix(word):
    word = (word + 0x9e3779b97f4a7c15) & MASK
    word = ((word ^ word >> 30) * 0xbf58476d1ce4e5b9) & MASK
    word = ((word ^ word >> 27) * 0x94d049bb133111eb) & MASK
    return word ^ word >> 31


def seal(plan):
    struct.pack_into('<Q', plan, CHECKSUM, 0)
    total = len(plan)
    for (word,) in struct.iter_unpack('<Q', bytes(plan)):
        total = (mix(total ^ word) + total * 3) & MASK
    struct.pack_into('<Q', plan, CHECKSUM, total)
    return plan


def on_device(plan, device):
    changed = bytearray(plan)
    arenas, count = (struct.unpack_from(kind, plan, at)[0]
                     for kind, at in (('<Q', ARENAS_AT), ('<I', ARENAS)))
    for arena in range(count):
        struct.pack_into('<I', changed, arenas + 32 * arena + 16, device)
    return seal(changed)
