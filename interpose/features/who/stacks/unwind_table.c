#include "interpose/features/who/stacks/unwind_table.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "interpose/features/who/stacks/objects.h"

uint64_t bfc_known_rules[1 << BFC_RULE_SLOT_BITS][2];

void bfc_frame_rules_forget(void) {
    for (size_t i = 0; i < sizeof bfc_known_rules / sizeof bfc_known_rules[0]; i++)
        for (size_t j = 0; j < 2; j++)
            bfc_store_relaxed(&bfc_known_rules[i][j], 0);
}

#ifdef __x86_64__

/* The numbers that DWARF gives to registers. */
enum { FRAME_POINTER = 6, STACK_POINTER = 7, RETURN_ADDRESS = 16 };

struct bytes {
    struct bfc_readable *readable;
    uint64_t at, end;
    bool bad; /* a read failed or met an unknown format, so that nothing read so far may be used */
};

static uint64_t take_bytes(struct bytes *bytes, size_t size) {
    uint64_t value = 0;
    if (bytes->bad || bytes->end - bytes->at < size ||
        !bfc_readable_copy(bytes->readable, bytes->at, &value, size)) {
        bytes->bad = true;
        return 0;
    }
    bytes->at += size;
    return value;
}

/* Reads a number in LEB128, DWARF's encoding of variable length, of nine bytes at most. */
static uint64_t take_leb(struct bytes *bytes, bool is_signed) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 63 && !bytes->bad; shift += 7) {
        uint64_t byte = take_bytes(bytes, 1);
        value |= (byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return is_signed && (byte & 0x40) ? value | ~UINT64_C(0) << (shift + 7) : value;
    }
    bytes->bad = true;
    return 0;
}

static uint64_t take_uleb(struct bytes *bytes) {
    return take_leb(bytes, false);
}

static int64_t take_sleb(struct bytes *bytes) {
    return (int64_t)take_leb(bytes, true);
}

static void skip_bytes(struct bytes *bytes, uint64_t size) {
    if (bytes->bad || bytes->end - bytes->at < size)
        bytes->bad = true;
    else
        bytes->at += size;
}

/* The parts of a bfc_frame_rule, with offsets in bytes. */
struct rule {
    enum bfc_frame_base base;
    enum bfc_saved_pointer pointer;
    int32_t base_offset, pointer_offset;
};

struct place {
    struct bfc_readable *readable;
    struct bfc_object object;
};

/* Returns a reader of the object's bytes from `address` to the object's end. */
static struct bytes mapped_bytes(const struct place *place, uint64_t address) {
    bool inside = address >= place->object.start && address < place->object.end;
    return (struct bytes){
        .readable = place->readable, .at = address, .end = place->object.end, .bad = !inside};
}

/* Encodings of addresses (DW_EH_PE_… in the Linux Standard Base). Linkers use no others in the
 * index of an unwind table. */
enum { SDATA4 = 0x0b, UDATA4 = 0x03, RELATIVE_TO_INDEX = 0x30, RELATIVE_TO_ITSELF = 0x10 };

struct index_row {
    /* where a function and its entry begin, relative to the start of the index */
    int32_t code, entry;
};

/* Finds the entry (FDE) in the unwind table for the last function that begins at or below the
 * address; 0: there is none. */
static uint64_t find_entry(const struct place *place, uint64_t address) {
    uint64_t index = place->object.index;
    struct bytes bytes = mapped_bytes(place, index);
    uint64_t version = take_bytes(&bytes, 1), to_table = take_bytes(&bytes, 1),
             of_count = take_bytes(&bytes, 1);
    uint64_t of_rows = take_bytes(&bytes, 1);
    skip_bytes(&bytes, 4);
    uint64_t count = take_bytes(&bytes, 4);
    struct index_row row;
    if (bytes.bad || version != 1 || to_table != (RELATIVE_TO_ITSELF | SDATA4) ||
        of_count != UDATA4 || of_rows != (RELATIVE_TO_INDEX | SDATA4) ||
        count > (bytes.end - bytes.at) / sizeof row)
        return 0;
    int64_t wanted = (int64_t)(address - index), entry = 0;
    uint64_t low = 0, high = count; /* rows before `low` begin at or below the address */
    while (low < high) {
        uint64_t middle = (low + high) / 2;
        if (!bfc_readable_copy(place->readable, bytes.at + middle * sizeof row, &row, sizeof row))
            return 0;
        if (row.code <= wanted) {
            low = middle + 1;
            entry = row.entry;
        } else {
            high = middle;
        }
    }
    return low ? index + (uint64_t)entry : 0;
}

struct entry {
    struct bytes initial, own; /* the call frame instructions of the CIE, and of the FDE */
    uint64_t code;             /* where the function begins */
    uint64_t code_unit;
    int64_t data_unit;
    uint64_t encoding; /* encoding of the function's address in the FDE (DW_EH_PE_…) */
    bool is_signal, has_data;
};

/* Returns a reader of the bytes of an unwind table's entry that follow its length. */
static struct bytes open_entry(const struct place *place, uint64_t at) {
    struct bytes bytes = mapped_bytes(place, at);
    uint64_t length = take_bytes(&bytes, 4);
    if (length >= 0xfffffff0 || (bytes.end - bytes.at) < length)
        bytes.bad = true;
    else
        bytes.end = bytes.at + length;
    return bytes;
}

static void skip_address(struct bytes *bytes, uint64_t encoding) {
    bool eight = (encoding & 0x0f) == 0 || (encoding & 0x07) == 4;
    skip_bytes(bytes, eight ? 8 : 4);
    /* Addresses of variable length or of 2 bytes are not supported. */
    if ((encoding & 0x07) == 1 || (encoding & 0x07) == 2)
        bytes->bad = true;
}

/* Reads a CIE's augmentation string: after a "z", each letter says which data follow. */
static void read_augmentation(struct bytes *bytes, struct bytes letters, struct entry *entry) {
    uint64_t letter = take_bytes(&letters, 1);
    if (letter != 'z') {
        bytes->bad |= letter != '\0';
        return;
    }
    entry->has_data = true;
    uint64_t size = take_uleb(bytes);
    struct bytes data = *bytes;
    skip_bytes(bytes, size);
    while (!data.bad && (letter = take_bytes(&letters, 1))) {
        if (letter == 'R')
            entry->encoding = take_bytes(&data, 1);
        else if (letter == 'L')
            skip_bytes(&data, 1);
        else if (letter == 'P')
            skip_address(&data, take_bytes(&data, 1));
        else if (letter == 'S')
            entry->is_signal = true;
        else
            data.bad = true;
    }
    bytes->bad |= data.bad;
}

/* Reads a CIE, the part of an unwind table's entry that many functions share. */
static bool read_common(const struct place *place, uint64_t at, struct entry *entry) {
    struct bytes bytes = open_entry(place, at);
    uint64_t id = take_bytes(&bytes, 4), version = take_bytes(&bytes, 1);
    struct bytes letters = bytes;
    while (take_bytes(&bytes, 1))
        ;
    entry->code_unit = take_uleb(&bytes);
    entry->data_unit = take_sleb(&bytes);
    uint64_t returns = version == 1 ? take_bytes(&bytes, 1) : take_uleb(&bytes);
    if (bytes.bad || id != 0 || (version != 1 && version != 3) || returns != RETURN_ADDRESS)
        return false;
    read_augmentation(&bytes, letters, entry);
    entry->initial = bytes;
    return !bytes.bad;
}

/* Reads the unwind table's entry for the address. False: the table does not cover the address, or
 * its format is not supported. */
static bool read_entry(const struct place *place, uint64_t address, struct entry *entry) {
    uint64_t at = find_entry(place, address);
    struct bytes bytes = open_entry(place, at);
    uint64_t common = bytes.at;
    common -= take_bytes(&bytes, 4);
    *entry = (struct entry){0};
    if (!at || bytes.bad || !read_common(place, common, entry) ||
        entry->encoding != (RELATIVE_TO_ITSELF | SDATA4))
        return false;
    entry->code = bytes.at;
    entry->code += (uint64_t)(int64_t)(int32_t)take_bytes(&bytes, 4);
    uint64_t size = take_bytes(&bytes, 4);
    if (entry->has_data)
        skip_bytes(&bytes, take_uleb(&bytes));
    entry->own = bytes;
    return !bytes.bad && address - entry->code < size;
}

struct state {
    struct rule rule;
    /* the return address is not in the word below the frame's base, so that no rule can express
     * it */
    bool returns_elsewhere;
};

struct machine {
    struct state now, initial, kept[8];
    unsigned depth;
    uint64_t code;
    const struct entry *entry;
    uint64_t address;
};

static void set_base(struct state *state, uint64_t number, int64_t offset) {
    bool known = number == STACK_POINTER || number == FRAME_POINTER;
    state->rule.base = (!known                    ? BFC_BASE_NONE
                        : number == STACK_POINTER ? BFC_BASE_STACK
                                                  : BFC_BASE_POINTER);
    state->rule.base_offset = (int32_t)offset;
}

static void set_saved(struct state *state, uint64_t number, int64_t offset) {
    if (number == FRAME_POINTER) {
        state->rule.pointer = BFC_POINTER_SAVED;
        state->rule.pointer_offset = (int32_t)offset;
    } else if (number == RETURN_ADDRESS) {
        state->returns_elsewhere = offset != -8;
    }
}

static void restore_initial(struct machine *machine, uint64_t number) {
    if (number == FRAME_POINTER) {
        machine->now.rule.pointer = machine->initial.rule.pointer;
        machine->now.rule.pointer_offset = machine->initial.rule.pointer_offset;
    } else if (number == RETURN_ADDRESS) {
        machine->now.returns_elsewhere = machine->initial.returns_elsewhere;
    }
}

/* Reads a DWARF expression of the form DW_OP_breg6 OFFSET [DW_OP_deref], the only form that
 * compilers write in functions which align the stack. `reads` is set to whether it has a
 * DW_OP_deref. */
enum { OP_FRAME_POINTER = 0x70 + FRAME_POINTER, OP_READ = 0x06 };

static bool read_expression(struct bytes *bytes, bool *reads, int64_t *offset) {
    uint64_t size = take_uleb(bytes);
    struct bytes inner = *bytes;
    skip_bytes(bytes, size);
    if (bytes->bad)
        return false;
    inner.end = bytes->at;
    uint64_t operation = take_bytes(&inner, 1);
    *offset = take_sleb(&inner);
    *reads = !inner.bad && inner.at < inner.end && take_bytes(&inner, 1) == OP_READ;
    return !inner.bad && operation == OP_FRAME_POINTER && inner.at == inner.end;
}

static void set_base_by_expression(struct machine *machine, struct bytes *bytes) {
    bool reads;
    int64_t offset = 0;
    bool known = read_expression(bytes, &reads, &offset) && reads;
    machine->now.rule.base = known ? BFC_BASE_INDIRECT : BFC_BASE_NONE;
    machine->now.rule.base_offset = (int32_t)offset;
}

static void set_saved_by_expression(struct machine *machine, struct bytes *bytes) {
    bool reads;
    int64_t offset = 0;
    uint64_t number = take_uleb(bytes);
    bool known = read_expression(bytes, &reads, &offset) && !reads;
    if (number == RETURN_ADDRESS || (number == FRAME_POINTER && !known)) {
        machine->now.returns_elsewhere = true;
    } else if (number == FRAME_POINTER) {
        machine->now.rule.pointer = BFC_POINTER_THERE;
        machine->now.rule.pointer_offset = (int32_t)offset;
    }
}

/* Call frame instructions by their codes (DWARF 5, table 7.29). */
enum {
    CFA_NOP = 0x00,
    CFA_ADVANCE1 = 0x02, /* advances the code address by an operand of one byte */
    /* advances the code address by an operand of four bytes; code 0x03 has an operand of two
     * bytes */
    CFA_ADVANCE4 = 0x04,
    CFA_OFFSET_EXTENDED = 0x05,
    CFA_RESTORE_EXTENDED = 0x06,
    CFA_UNDEFINED = 0x07,
    CFA_SAME_VALUE = 0x08,
    CFA_REMEMBER = 0x0a,
    CFA_RESTORE_STATE = 0x0b,
    CFA_DEF = 0x0c,
    CFA_DEF_REGISTER = 0x0d,
    CFA_DEF_OFFSET = 0x0e,
    CFA_DEF_EXPRESSION = 0x0f,
    CFA_EXPRESSION = 0x10,
    CFA_OFFSET_EXTENDED_SF = 0x11,
    CFA_DEF_SF = 0x12,
    CFA_DEF_OFFSET_SF = 0x13,
    CFA_VAL_EXPRESSION = 0x16,
    CFA_GNU_ARGS_SIZE = 0x2e,
};

static void remember_state(struct machine *machine, struct bytes *bytes) {
    if (machine->depth == sizeof machine->kept / sizeof machine->kept[0])
        bytes->bad = true;
    else
        machine->kept[machine->depth++] = machine->now;
}

static void restore_state(struct machine *machine, struct bytes *bytes) {
    if (machine->depth == 0)
        bytes->bad = true;
    else
        machine->now = machine->kept[--machine->depth];
}

/* Runs one call frame instruction that does not advance the code address and has no operand in the
 * low bits of its code. Operands are read in separate statements, because C does not define the
 * order in which arguments are evaluated. */
static void run_instruction(struct machine *machine, uint64_t code, struct bytes *bytes) {
    struct state *now = &machine->now;
    int64_t unit = machine->entry->data_unit;
    uint64_t number;
    switch (code) {
    case CFA_NOP:
        break;
    case CFA_DEF:
        number = take_uleb(bytes);
        set_base(now, number, (int64_t)take_uleb(bytes));
        break;
    case CFA_DEF_SF:
        number = take_uleb(bytes);
        set_base(now, number, take_sleb(bytes) * unit);
        break;
    case CFA_DEF_REGISTER:
        set_base(now, take_uleb(bytes), now->rule.base_offset);
        break;
    case CFA_DEF_OFFSET:
        now->rule.base_offset = (int32_t)take_uleb(bytes);
        break;
    case CFA_DEF_OFFSET_SF:
        now->rule.base_offset = (int32_t)(take_sleb(bytes) * unit);
        break;
    case CFA_DEF_EXPRESSION:
        set_base_by_expression(machine, bytes);
        break;
    case CFA_OFFSET_EXTENDED:
        number = take_uleb(bytes);
        set_saved(now, number, (int64_t)take_uleb(bytes) * unit);
        break;
    case CFA_OFFSET_EXTENDED_SF:
        number = take_uleb(bytes);
        set_saved(now, number, take_sleb(bytes) * unit);
        break;
    case CFA_RESTORE_EXTENDED:
        restore_initial(machine, take_uleb(bytes));
        break;
    case CFA_UNDEFINED:
        if (take_uleb(bytes) == RETURN_ADDRESS)
            now->rule.base = BFC_BASE_OUTERMOST;
        break;
    case CFA_SAME_VALUE:
        if (take_uleb(bytes) == FRAME_POINTER)
            now->rule.pointer = BFC_POINTER_KEPT;
        break;
    case CFA_REMEMBER:
        remember_state(machine, bytes);
        break;
    case CFA_RESTORE_STATE:
        restore_state(machine, bytes);
        break;
    case CFA_EXPRESSION:
        set_saved_by_expression(machine, bytes);
        break;
    case CFA_VAL_EXPRESSION:
        take_uleb(bytes);
        skip_bytes(bytes, take_uleb(bytes));
        break;
    case CFA_GNU_ARGS_SIZE:
        take_uleb(bytes);
        break;
    default:
        bytes->bad = true;
    }
}

/* Runs call frame instructions up to the first that applies only to code after the wanted
 * address. */
static bool run_program(struct machine *machine, struct bytes bytes) {
    while (bytes.at < bytes.end && !bytes.bad) {
        uint64_t code = take_bytes(&bytes, 1), small = code & 0x3f;
        uint64_t advance = 0;
        if (code >> 6 == 1)
            advance = small;
        else if (code >= CFA_ADVANCE1 && code <= CFA_ADVANCE4)
            advance = take_bytes(&bytes, (size_t)1 << (code - CFA_ADVANCE1));
        else if (code >> 6 == 2)
            set_saved(&machine->now, small, (int64_t)take_uleb(&bytes) * machine->entry->data_unit);
        else if (code >> 6 == 3)
            restore_initial(machine, small);
        else
            run_instruction(machine, code, &bytes);
        machine->code += advance * machine->entry->code_unit;
        if (machine->code > machine->address)
            break;
    }
    return !bytes.bad;
}

static struct rule rule_of(const struct entry *entry, uint64_t address) {
    struct machine machine = {.entry = entry, .code = entry->code, .address = address};
    const struct rule none = {.base = BFC_BASE_NONE};
    if (entry->is_signal)
        return (struct rule){.base = BFC_BASE_SIGNAL};
    if (!run_program(&machine, entry->initial))
        return none;
    machine.initial = machine.now;
    if (!run_program(&machine, entry->own) || machine.now.returns_elsewhere)
        return none;
    return machine.now.rule;
}

static bool fits_bits(int32_t offset, int bits) {
    int32_t limit = 1 << (bits - 1);
    return offset % 8 == 0 && offset / 8 >= -limit && offset / 8 < limit;
}

static bfc_frame_rule pack_rule(const struct rule *rule) {
    if (!fits_bits(rule->base_offset, BFC_RULE_BASE_BITS) ||
        !fits_bits(rule->pointer_offset, BFC_RULE_POINTER_BITS))
        return BFC_BASE_NONE;
    uint32_t base = (uint16_t)(rule->base_offset / 8),
             pointer = (uint8_t)(rule->pointer_offset / 8);
    return pointer << 21 | base << 5 | (uint32_t)rule->pointer << 3 | (uint32_t)rule->base;
}

NOINLINE bfc_frame_rule bfc_frame_rule_look_up(struct bfc_readable *readable, uint64_t address) {
    struct place place = {.readable = readable};
    struct entry entry;
    uint64_t key = bfc_rule_key(address);
    bfc_frame_rule rule = BFC_BASE_NONE;
    if (bfc_object_at(readable, address, &place.object) && read_entry(&place, address, &entry)) {
        struct rule found = rule_of(&entry, address);
        rule = pack_rule(&found);
    }
    uint64_t *slot = bfc_known_rules[key >> BFC_RULE_TAG_BITS];
    bfc_store_relaxed(&slot[1], bfc_load_relaxed(&slot[0]));
    bfc_store_relaxed(&slot[0], key << BFC_RULE_BITS | rule);
    return rule;
}

#else

NOINLINE bfc_frame_rule bfc_frame_rule_look_up(struct bfc_readable *readable, uint64_t address) {
    (void)readable, (void)address;
    return BFC_BASE_NONE;
}

#endif
