/*
 * A model of how a freed block finds its next owner, for spin. docs/internals/safety.md tells the argument.
 *
 * Two contexts, OWNER and PEER, with two streams each; a pool of two neighbouring cells in OWNER;
 * two threads that run every program there is out of: submit a kernel, submit one that ends only
 * after a kernel that the same thread submits later, free, allocate one cell or both, peer access
 * on and off, capture begin, invalidation and end. What other threads can see half done is a step of
 * its own. A record or a wait of ours may fail at any moment (FAILS): then its block is deferred, or
 * back; a free whose host wait fails is one that did not happen, but for its fence.
 *
 * The device: a kernel completes when all before it in its stream have, and all that its context
 * was made to wait for when it was submitted. An event is the set of kernels that it waits for; a
 * completed kernel leaves every set. Tickets count from the complete prefix on, which is so always
 * ticket 0: what the library knows is taken to be up to date (knowing less only makes it reuse
 * less). So only incomplete fences and pending kernels are bounded, not their number over time.
 *
 * Asserted:
 *   safety    earlier == 0     a kernel runs only after all kernels of the memory's earlier owners
 *   capture   !capturing       no record or wait by context happens while a stream captures, or a
 *                              capture that was invalidated is not ended yet
 *   progress  pending == 0     when nothing can move, every kernel has completed ...
 *             inside == 0      ... and every call has returned
 *   deferred  in_deferred == 0 no block stays deferred once no capture is under way
 *
 * Defines. MODE (SYNC, LAZY, ORDERED). FREES, ALLOCATIONS, KERNELS, NEEDS, PEERS, CAPTURES, FAILS:
 * how often each may happen, in all; ANY: without limit. WITHOUT_x removes the safeguard x; LIMIT_x
 * allows the programs that are documented as limits. Each of these must make an assertion fail.
 * LAX_DEFERRED: a free lets go of the gate before its block is deferred, as the code does; FAILS needs
 * it, since blocks are then deferred without a capture.
 */

#define SYNC    1
#define LAZY    2
#define ORDERED 3
#define ANY     255

#ifndef MODE
#define MODE ORDERED
#endif
#ifndef FREES
#define FREES 2
#endif
#ifndef ALLOCATIONS
#define ALLOCATIONS 2
#endif
#ifndef KERNELS
#define KERNELS 3
#endif
#ifndef NEEDS
#define NEEDS 0
#endif
#ifndef PEERS
#define PEERS 0
#endif
#ifndef CAPTURES
#define CAPTURES 0
#endif
#ifndef FAILS
#define FAILS 0
#endif
#ifndef SLOTS
#define SLOTS 3   /* kernels pending at a time; at most 8 */
#endif
#ifndef TICKETS
#define TICKETS 3 /* incomplete fences at a time */
#endif

#define OWNER 0
#define PEER  1
#define BIT(i) (1 << (i))

/* ---- the device ---- */

byte pending;            /* kernels submitted and not complete */
byte in_context[2];      /* those of each context */
byte newest[4];          /* what the next kernel of a stream waits for: OWNER's 0 and 1, PEER's */
byte after[SLOTS];       /* what a kernel waits for */
byte unpaid;             /* kernels that need one which is not submitted yet */
bit access;              /* PEER can reach OWNER's memory */
bit capturing;
bit invalid;             /* what captures was invalidated, and is not ended yet */

/* Watched, not used: */
byte earlier[SLOTS];     /* pending kernels of earlier owners of a kernel's memory */
byte users[2], past[2];  /* of a cell: its owner's pending kernels, those of earlier owners */
byte owing[2];           /* of a cell: kernels unpaid at its free */
byte owing_late[2];      /* and when it left deferred */

/* ---- the library ---- */

#define LIVE   0
#define BUSY   1 /* being freed, or handed out but not returned yet */
#define READY  2
#define PENDING  3
#define DEFERRED  4

byte state[2];
byte fence[2];
bit whole;               /* the two cells are one live block */
bit exposed[2];          /* PEER had access since the block was allocated */
bit registered;          /* the library counts PEER among those with access */

#define NOTHING   0
#define RECORDING 1
#define RECORDED  2

byte entry[2 * (TICKETS + 1)]; /* by context and ticket */
byte event[2 * (TICKETS + 1)];
#define AT(context, ticket) ((context) * (TICKETS + 1) + (ticket))

byte drawn;              /* the last ticket */
#ifdef WITHOUT_SEQUENCE
byte taken[4];           /* events recorded that have no ticket yet, by context and thread */
#endif
byte handed_out;         /* the highest fence under which a block was handed out */
#if MODE == ORDERED
byte waited_for;         /* the highest fence that OWNER was made to wait for */
#endif
byte host_only;          /* the highest fence that must not be waited for on the device */
#ifdef LAX_DEFERRED
bit has_deferred;           /* some block may be deferred */
byte early[2];           /* by thread that fences deferred blocks: those there before its record */
#endif
byte holding;            /* threads that hold the gate shared */

byte inside;             /* calls under way */
byte number[2];          /* the tickets of frees under way, by thread */
byte wanted[2];          /* the fences of allocations under way */
byte at_hand[2];         /* the cells of the block that a call is about */
#define set at_hand[me]

/* ---- what is left to do ---- */

byte frees = FREES, allocations = ALLOCATIONS, kernels = KERNELS;
byte needs = NEEDS, peers = PEERS, captures = CAPTURES, fails = FAILS;
byte debt[2];            /* by thread: the kernel, plus one, that needs one of this thread */
byte blocked;            /* the stream of the unpaid kernel */

inline spend(budget) {
    if
    :: budget != ANY -> budget--
    :: else
    fi
}

/* ---- completion ---- */

hidden byte i_, k_, shift_;

inline lower(ticket) {
    ticket = (ticket > shift_ -> ticket - shift_ : 0)
}

inline ready(c) {
    if
    :: state[c] == PENDING && fence[c] == 0 ->
        state[c] = READY;
        owing[c] = 0;
        owing_late[c] = 0
    :: else
    fi
}

/*
 * An event that is complete retires all its context's entries up to its own; what lies below the
 * oldest entry of any context is the complete prefix.
 */
inline learn() {
    i_ = TICKETS;
    do
    :: i_ == 0 -> break
    :: else ->
        if
        :: entry[AT(OWNER, i_)] == RECORDED && event[AT(OWNER, i_)] == 0 ->
            k_ = i_;
            do
            :: k_ == 0 -> break
            :: else -> entry[AT(OWNER, k_)] = NOTHING; event[AT(OWNER, k_)] = 0; k_--
            od
        :: else
        fi;
        if
        :: entry[AT(PEER, i_)] == RECORDED && event[AT(PEER, i_)] == 0 ->
            k_ = i_;
            do
            :: k_ == 0 -> break
            :: else -> entry[AT(PEER, k_)] = NOTHING; event[AT(PEER, k_)] = 0; k_--
            od
        :: else
        fi;
        i_--
    od;
    shift_ = 0;
    do
    :: shift_ < drawn && entry[AT(OWNER, shift_ + 1)] == NOTHING &&
       entry[AT(PEER, shift_ + 1)] == NOTHING -> shift_++
    :: else -> break
    od;
    if
    :: shift_ > 0 ->
        i_ = 1;
        do
        :: i_ > TICKETS -> break
        :: else ->
            k_ = i_ + shift_;
            if
            :: k_ <= TICKETS ->
                entry[AT(OWNER, i_)] = entry[AT(OWNER, k_)];
                entry[AT(PEER, i_)] = entry[AT(PEER, k_)];
                event[AT(OWNER, i_)] = event[AT(OWNER, k_)];
                event[AT(PEER, i_)] = event[AT(PEER, k_)]
            :: else ->
                entry[AT(OWNER, i_)] = NOTHING;
                entry[AT(PEER, i_)] = NOTHING;
                event[AT(OWNER, i_)] = 0;
                event[AT(PEER, i_)] = 0
            fi;
            i_++
        od;
        drawn = drawn - shift_;
        lower(handed_out);
#if MODE == ORDERED
        lower(waited_for);
#endif
        lower(host_only);
        lower(fence[0]);
        lower(fence[1]);
        lower(number[0]);
        lower(number[1]);
        lower(wanted[0]);
        lower(wanted[1])
    :: else
    fi;
    ready(0);
    ready(1);
    k_ = 0;
    shift_ = 0
}


/*
 * ---- the same state in one form ----
 *
 * Many states differ in names alone, and have the same futures. With CANONICAL the search keeps one
 * of them: kernels' slots in the order of their submission or, where that says nothing, of what
 * refers to them; a context's two streams and the pool's two cells in the order of their contents;
 * a set of kernels to wait for with all that those wait for; and no ticket that nothing asks for
 * and whose entries a later one's stand for (their events, of one context, are ordered by
 * inclusion, and each retires the entries below it). Nothing is lost; without it the model is plain
 * Promela, which spin can also print step by step.
 */
#ifdef CANONICAL
c_code {
#define HAS(kernels, k) (((kernels) >> (k)) & 1)
#define ENTRY(context, ticket) now.entry[(context) * (TICKETS + 1) + (ticket)]
#define EVENT(context, ticket) now.event[(context) * (TICKETS + 1) + (ticket)]

/* Calls `change` for every set of kernels in the state. */
static void for_all_sets(uchar (*change)(uchar kernels, int k), int k) {
    int i;
    now.pending = change(now.pending, k);
    now.unpaid = change(now.unpaid, k);
    for (i = 0; i < SLOTS; i++) {
        now.after[i] = change(now.after[i], k);
        now.earlier[i] = change(now.earlier[i], k);
    }
    for (i = 0; i < 4; i++)
        now.newest[i] = change(now.newest[i], k);
    for (i = 0; i < 2; i++) {
        now.in_context[i] = change(now.in_context[i], k);
        now.users[i] = change(now.users[i], k);
        now.past[i] = change(now.past[i], k);
        now.owing[i] = change(now.owing[i], k);
        now.owing_late[i] = change(now.owing_late[i], k);
    }
    for (i = 0; i < 2 * (TICKETS + 1); i++)
        now.event[i] = change(now.event[i], k);
}

#define SWAP(a, b) do { uchar held_ = (a); (a) = (b); (b) = held_; } while (0)

static uchar swap_bits(uchar kernels, int k) {
    uchar differ = HAS(kernels, k) ^ HAS(kernels, k + 1);
    return kernels ^ (differ << k) ^ (differ << (k + 1));
}

static void swap_kernels(int k) {
    int me;
    for_all_sets(swap_bits, k);
    SWAP(now.after[k], now.after[k + 1]);
    SWAP(now.earlier[k], now.earlier[k + 1]);
    for (me = 0; me < 2; me++)
        if (now.debt[me] == k + 1)
            now.debt[me] = k + 2;
        else if (now.debt[me] == k + 2)
            now.debt[me] = k + 1;
}

/* What refers to a kernel. */
static unsigned long references(int k) {
    unsigned long found = HAS(now.in_context[0], k) + 2 * HAS(now.unpaid, k);
    int i;
    for (i = 0; i < 4; i++)
        found = 2 * found + HAS(now.newest[i], k);
    for (i = 0; i < 2; i++)
        found = 4 * found + 2 * HAS(now.past[i], k) + HAS(now.users[i], k);
    for (i = 0; i < 2 * (TICKETS + 1); i++)
        found = 2 * found + HAS(now.event[i], k);
    for (i = 0; i < SLOTS; i++)
        found = 2 * found + HAS(now.earlier[i], k);
    return found;
}

/* Whether the kernel in slot k + 1 should come first. */
static int is_out_of_order(int k) {
    if (!HAS(now.pending, k + 1))
        return 0;
    if (!HAS(now.pending, k))
        return 1;
    if (HAS(now.after[k + 1], k))
        return 0;
    return HAS(now.after[k], k + 1) || references(k) < references(k + 1);
}

static void order_kernels(void) {
    int k, rounds;
    for (rounds = 0; rounds < SLOTS; rounds++)
        for (k = 0; k + 1 < SLOTS; k++)
            if (is_out_of_order(k))
                swap_kernels(k);
}

static uchar close_set(uchar kernels, int unused) {
    int k;
    for (k = 0; k < SLOTS; k++)
        if (HAS(kernels, k))
            kernels |= now.after[k];
    return kernels;
}

/* Membership in a context is of the kernel itself, and so is what is not paid. */
static void close_sets(void) {
    int i;
    for (i = 0; i < SLOTS * SLOTS; i++)
        now.after[i % SLOTS] = close_set(now.after[i % SLOTS], 0);
    for (i = 0; i < SLOTS; i++)
        now.earlier[i] &= ~now.after[i]; /* it cannot come too early any more */
    for (i = 0; i < 4; i++)
        now.newest[i] = close_set(now.newest[i], 0);
    for (i = 0; i < 2; i++) {
        now.users[i] = close_set(now.users[i], 0);
        now.past[i] = close_set(now.past[i], 0);
        now.owing[i] &= now.unpaid;
        now.owing_late[i] &= now.unpaid;
    }
    for (i = 0; i < 2 * (TICKETS + 1); i++)
        now.event[i] = close_set(now.event[i], 0);
}

static void order_streams(void) {
    int first;
    for (first = 0; first < 4; first += 2) {
        if (now.newest[first] >= now.newest[first + 1])
            continue;
        SWAP(now.newest[first], now.newest[first + 1]);
        if (now.unpaid && now.blocked / 2 == first / 2)
            now.blocked ^= 1;
    }
}

static unsigned long contents(int cell) {
    unsigned long found = now.state[cell];
    found = 2 * found + now.exposed[cell];
    found = 4 * found + HAS(now.at_hand[0], cell) + 2 * HAS(now.at_hand[1], cell);
#ifdef LAX_DEFERRED
    found = 4 * found + HAS(now.early[0], cell) + 2 * HAS(now.early[1], cell);
#endif
    found = 16 * found + now.fence[cell];
    found = 256 * found + now.users[cell];
    found = 256 * found + now.past[cell];
    return 4 * found + 2 * (now.owing[cell] != 0) + (now.owing_late[cell] != 0);
}

static void order_cells(void) {
    int me;
    if (contents(0) >= contents(1))
        return;
    SWAP(now.state[0], now.state[1]);
    SWAP(now.exposed[0], now.exposed[1]);
    SWAP(now.fence[0], now.fence[1]);
    SWAP(now.users[0], now.users[1]);
    SWAP(now.past[0], now.past[1]);
    SWAP(now.owing[0], now.owing[1]);
    SWAP(now.owing_late[0], now.owing_late[1]);
    for (me = 0; me < 2; me++) {
        now.at_hand[me] = 2 * (now.at_hand[me] & 1) + (now.at_hand[me] >> 1);
#ifdef LAX_DEFERRED
        now.early[me] = 2 * (now.early[me] & 1) + (now.early[me] >> 1);
#endif
    }
}

static int is_asked_for(int ticket) {
    return now.fence[0] == ticket || now.fence[1] == ticket || now.number[0] == ticket ||
           now.number[1] == ticket || now.wanted[0] == ticket || now.wanted[1] == ticket ||
           now.handed_out == ticket || now.host_only == ticket;
}

static int is_needless(int ticket) {
    int peer = ENTRY(PEER, ticket) != NOTHING;
    if (is_asked_for(ticket) || ENTRY(OWNER, ticket) == RECORDING ||
        ENTRY(PEER, ticket) == RECORDING)
        return 0;
    return !peer || (ticket < now.drawn && ENTRY(PEER, ticket + 1) != NOTHING);
}

#define LOWER(field) ((field) -= (field) > ticket)

static void drop(int ticket) {
    int i;
    for (i = ticket; i < TICKETS; i++) {
        ENTRY(OWNER, i) = ENTRY(OWNER, i + 1);
        EVENT(OWNER, i) = EVENT(OWNER, i + 1);
        ENTRY(PEER, i) = ENTRY(PEER, i + 1);
        EVENT(PEER, i) = EVENT(PEER, i + 1);
    }
    ENTRY(OWNER, TICKETS) = ENTRY(PEER, TICKETS) = NOTHING;
    EVENT(OWNER, TICKETS) = EVENT(PEER, TICKETS) = 0;
    now.drawn--;
#if MODE == ORDERED
    now.waited_for -= now.waited_for >= ticket; /* nothing asks for this one */
#endif
    for (i = 0; i < 2; i++) {
        LOWER(now.fence[i]);
        LOWER(now.number[i]);
        LOWER(now.wanted[i]);
    }
    LOWER(now.handed_out);
    LOWER(now.host_only);
}

static void drop_needless(void) {
    int ticket;
    for (ticket = now.drawn; ticket > 0; ticket--)
        if (is_needless(ticket))
            drop(ticket);
}

static void make_canonical(void) {
#if PEERS == 0
    now.handed_out = 0; /* it is there for them */
#endif
    close_sets();
    drop_needless();
    order_kernels();
    order_streams();
    order_cells();
    order_kernels();
}
}
#define settle() c_code { make_canonical(); }
#else
#define settle() skip
#endif

/* ---- the device at work ---- */

#define RUNNABLE(k) ((pending & BIT(k)) != 0 && after[k] == 0 && (unpaid & BIT(k)) == 0)

/* A completed kernel leaves every set. */
inline complete(k) {
    assert(earlier[k] == 0);
    pending = pending & ~BIT(k);
    in_context[OWNER] = in_context[OWNER] & ~BIT(k);
    in_context[PEER] = in_context[PEER] & ~BIT(k);
    i_ = 0;
    do
    :: i_ == 4 -> break
    :: else ->
        newest[i_] = newest[i_] & ~BIT(k);
#ifdef WITHOUT_SEQUENCE
        taken[i_] = taken[i_] & ~BIT(k);
#endif
        i_++
    od;
    i_ = 0;
    do
    :: i_ == SLOTS -> break
    :: else ->
        after[i_] = after[i_] & ~BIT(k);
        earlier[i_] = earlier[i_] & ~BIT(k);
        i_++
    od;
    i_ = 0;
    do
    :: i_ == 2 -> break
    :: else ->
        users[i_] = users[i_] & ~BIT(k);
        past[i_] = past[i_] & ~BIT(k);
        owing[i_] = owing[i_] & ~BIT(k);
        owing_late[i_] = owing_late[i_] & ~BIT(k);
        i_++
    od;
    i_ = 0;
    do
    :: i_ == 2 * (TICKETS + 1) -> break
    :: else -> event[i_] = event[i_] & ~BIT(k); i_++
    od;
    learn()
}

active proctype device() {
end:
    do
    :: d_step { RUNNABLE(0) -> complete(0); settle() }
    :: d_step { RUNNABLE(1) -> complete(1); settle() }
#if SLOTS > 2
    :: d_step { RUNNABLE(2) -> complete(2); settle() }
#endif
#if SLOTS > 3
    :: d_step { RUNNABLE(3) -> complete(3); settle() }
#endif
#if SLOTS > 4
    :: d_step { RUNNABLE(4) -> complete(4); settle() }
#endif
    od
}

/* When nothing can move, all is done. */
active proctype monitor() {
    atomic {
        timeout ->
        assert(pending == 0);
        assert(inside == 0);
        assert(state[0] != DEFERRED && state[1] != DEFERRED)
    }
}

/* ---- submitting ---- */

#define FREE_SLOT(k) ((pending & BIT(k)) == 0)
#if SLOTS > 4
#define FREE_SLOTS (FREE_SLOT(0) + FREE_SLOT(1) + FREE_SLOT(2) + FREE_SLOT(3) + FREE_SLOT(4))
#elif SLOTS > 3
#define FREE_SLOTS (FREE_SLOT(0) + FREE_SLOT(1) + FREE_SLOT(2) + FREE_SLOT(3))
#elif SLOTS > 2
#define FREE_SLOTS (FREE_SLOT(0) + FREE_SLOT(1) + FREE_SLOT(2))
#else
#define FREE_SLOTS (FREE_SLOT(0) + FREE_SLOT(1))
#endif

/* One slot is kept for a kernel that another needs. */
#define ROOM (FREE_SLOTS > (unpaid != 0))

/* Leaves the kernel's slot in k_. */
inline submit(stream) {
    k_ = 0;
    do
    :: FREE_SLOT(k_) -> break
    :: else -> k_++
    od;
    after[k_] = newest[stream];
    newest[stream] = BIT(k_);
    if
    :: stream < 2 -> in_context[OWNER] = in_context[OWNER] | BIT(k_)
    :: else -> in_context[PEER] = in_context[PEER] | BIT(k_)
    fi;
    pending = pending | BIT(k_)
}

inline use(c) {
    earlier[k_] = earlier[k_] | past[c];
    users[c] = users[c] | BIT(k_)
}

#define IS_LIVE(c) (state[c] == LIVE && !(whole && (c) == 1))

/* A kernel that works on the live block that starts at this cell: on all of it. */
inline submit_work(c, stream) {
    submit(stream);
    use(c);
    if
    :: whole -> use(1 - c)
    :: else
    fi;
    k_ = 0
}

/* ---- the gate ---- */

inline enter_gate() {
#ifndef WITHOUT_GATE
    holding++
#else
    skip
#endif
}

inline leave_gate() {
#ifndef WITHOUT_GATE
    holding--
#else
    skip
#endif
}

#ifdef WITHOUT_INVALID
#define SEEN_CAPTURING (capturing && !invalid)
#else
#define SEEN_CAPTURING capturing
#endif

/* ---- fences ---- */

#ifdef WITHOUT_PEER_SET
#define HAS_PEER(set) false
#else
#define HAS_PEER(set) ((((set) & 1) && exposed[0]) || (((set) & 2) && exposed[1]))
#endif

/* Of use in ordered alone. */
inline raise_host_only() {
#if MODE == ORDERED && !defined(WITHOUT_HOST_ONLY)
    host_only = drawn
#else
    skip
#endif
}

inline draw(me, peer) {
    assert(drawn < TICKETS);
    drawn++;
    number[me] = drawn;
    entry[AT(OWNER, drawn)] = RECORDING;
    if
    :: peer ->
        raise_host_only();
#ifndef WITHOUT_RESERVATION
        entry[AT(PEER, drawn)] = RECORDING
#endif
    :: else
    fi
}

#ifdef WITHOUT_RESERVATION
#define IS_DUE(context, ticket) (context == PEER || entry[AT(context, ticket)] == RECORDING)
#define PEER_IS_DUE HAS_PEER(set)
#else
#define IS_DUE(context, ticket) (entry[AT(context, ticket)] == RECORDING)
#define PEER_IS_DUE (number[me] != 0 && IS_DUE(PEER, number[me]))
#endif

/* The entry may have been retired by a later fence's event already. */
inline record(context, ticket) {
    assert(!capturing);
    if
    :: ticket != 0 && IS_DUE(context, ticket) ->
        entry[AT(context, ticket)] = RECORDED;
        event[AT(context, ticket)] = in_context[context];
        learn()
    :: else
    fi
}

/* Of one of the ticket's contexts, at whatever moment; then the ticket is nobody's. */
inline fail_record(me) {
    spend(fails);
#ifdef WITHOUT_VOID
    entry[AT(OWNER, number[me])] = RECORDED;
    event[AT(OWNER, number[me])] = 0;
    if
    :: entry[AT(PEER, number[me])] == RECORDING -> entry[AT(PEER, number[me])] = RECORDED
    :: else
    fi;
#else
    entry[AT(OWNER, number[me])] = NOTHING;
    entry[AT(PEER, number[me])] = NOTHING;
    event[AT(OWNER, number[me])] = 0;
#endif
    event[AT(PEER, number[me])] = 0;
    learn();
    number[me] = 0
}

/* ---- the pool ---- */

#ifdef WITHOUT_JOIN
#define JOINED fence[0]
#else
#define JOINED (fence[0] > fence[1] -> fence[0] : fence[1])
#endif

/* Two pending neighbours become one block. */
inline join_neighbours() {
    if
    :: state[0] == PENDING && state[1] == PENDING ->
        fence[0] = JOINED;
        fence[1] = fence[0];
        owing[0] = owing[0] | owing[1];
        owing[1] = owing[0];
        owing_late[0] = owing_late[0] | owing_late[1];
        owing_late[1] = owing_late[0]
    :: else
    fi
}

/* The kernels that need another yet, and that an event of OWNER recorded now would cover. */
#define OWING_NOW (unpaid & in_context[OWNER])

/* The code counts arrivals deferred, so that a fence never goes to a block that came later. */
inline arrive(c) {
#if defined(LAX_DEFERRED) && !defined(WITHOUT_ARRIVALS)
    early[0] = early[0] & ~BIT(c);
    early[1] = early[1] & ~BIT(c)
#else
    skip
#endif
}

inline put(c, as, with) {
    if
    :: set & BIT(c) ->
        state[c] = as;
        fence[c] = with;
        if
        :: as == DEFERRED ->
            owing[c] = OWING_NOW;
            arrive(c)
        :: else ->
            exposed[c] = 0;
#if MODE != SYNC
            owing[c] = owing[c] | OWING_NOW
#endif
        fi
    :: else
    fi
}

/* Takes the cells of `set` back into the pool. */
inline put_back(as, with) {
    if
    :: set == 3 -> whole = 0
    :: else
    fi;
    put(0, as, with);
    put(1, as, with);
    ready(0);
    ready(1);
    join_neighbours()
}

#ifdef LAX_DEFERRED
#define IS_EARLY(c) ((early[me] & BIT(c)) != 0)
#else
#define IS_EARLY(c) true
#endif

inline fence_deferred(c, with) {
    if
    :: state[c] == DEFERRED && IS_EARLY(c) ->
        state[c] = PENDING;
        fence[c] = with;
        exposed[c] = 0;
#ifndef LIMIT_DEFERRED
        owing_late[c] = OWING_NOW
#endif
    :: else
    fi
}

inline fence_all_deferred() {
    fence_deferred(0, number[me]);
    fence_deferred(1, number[me]);
    ready(0);
    ready(1);
    join_neighbours()
}

/* Nobody may use it from now on. */
inline begin_free(c) {
    if
    :: set & BIT(c) ->
        state[c] = BUSY;
        past[c] = past[c] | users[c];
        users[c] = 0
    :: else
    fi
}

inline take(c) {
    if
    :: set & BIT(c) ->
        state[c] = BUSY;
        fence[c] = 0;
        owing[c] = 0;
        owing_late[c] = 0;
        exposed[c] = registered
    :: else
    fi
}

inline take_cells() {
    take(0);
    take(1);
    if
    :: set == 3 -> whole = 1
    :: else
    fi
}

#define IN(set, c) (((set) & BIT(c)) != 0)
#define ALL(set, of_0, of_1) ((!IN(set, 0) || (of_0)) && (!IN(set, 1) || (of_1)))
#define ALL_READY(set) ALL(set, state[0] == READY, state[1] == READY)
#define IS_IDLE(c) (state[c] == READY || state[c] == PENDING)
#define ALL_IDLE(set) ALL(set, IS_IDLE(0), IS_IDLE(1))
#define FENCE_OF(set) ((IN(set, 0) && (!IN(set, 1) || fence[0] > fence[1])) -> fence[0] : fence[1])

#ifdef WITHOUT_MOMENT
#define IS_RECORDED(ticket) (entry[AT(OWNER, ticket)] != RECORDING)
#else
#define IS_RECORDED(ticket) true
#endif

/* The programs that are left out, as the limits say. */
#ifdef LIMIT_THREAD
#define MAY_REUSE(set) true
#define MAY_WAIT_FOR(set, me) true
#else
#define MAY_REUSE(set) (ALL(set, (owing[0] & unpaid) == 0, (owing[1] & unpaid) == 0))
#define MAY_WAIT_FOR(set, me) \
    (debt[me] == 0 || \
     ALL(set, ((owing[0] | owing_late[0]) & unpaid) == 0, ((owing[1] | owing_late[1]) & unpaid) == 0))
#endif

#ifdef WITHOUT_RECHECK
#define REGISTERED_SINCE false
#else
#define REGISTERED_SINCE (registered || host_only != 0)
#endif

/* ---- threads ---- */

#ifdef LIMIT_PEER
#define MAY_FREE (debt[me] == 0 || (in_context[PEER] & BIT(debt[me] - 1)) != 0)
#else
#define MAY_FREE (debt[me] == 0) /* natively it would wait for what only this thread can give */
#endif

proctype thread(bit me) {
    bit takes_pending; /* this allocation may take a pending block */

end:
    do

    /* submit a kernel on a block */
#define WORK(c, stream) \
    d_step { \
        kernels > 0 && ROOM && IS_LIVE(c) && (stream < 2 || access) -> \
        spend(kernels); \
        submit_work(c, stream); \
        settle() \
    }
    :: WORK(0, 0)
    :: WORK(0, 1)
    :: WORK(1, 0)
    :: WORK(1, 1)
    :: WORK(0, 2)
    :: WORK(0, 3)
    :: WORK(1, 2)
    :: WORK(1, 3)

    /* submit one that ends only after one that this thread submits later */
#define NEED(stream) \
    d_step { \
        needs > 0 && unpaid == 0 && FREE_SLOTS > 1 -> \
        spend(needs); \
        submit(stream); \
        unpaid = BIT(k_); \
        blocked = stream; \
        debt[me] = k_ + 1; \
        k_ = 0; \
        settle() \
    }
#if NEEDS > 0
    :: NEED(0)
    :: NEED(1)
#ifdef LIMIT_PEER
    :: NEED(2)
#endif
#define PAY(stream) \
    d_step { \
        debt[me] != 0 && blocked != stream -> \
        unpaid = 0; \
        blocked = 0; \
        submit(stream); \
        after[debt[me] - 1] = after[debt[me] - 1] | BIT(k_); \
        debt[me] = 0; \
        k_ = 0; \
        settle() \
    }
    :: PAY(0)
    :: PAY(1)
    :: PAY(2)
    :: PAY(3)
#endif

#ifdef LIMIT_TOLD
    /* tell a kernel under way about a block */
#define TELL(c, k) \
    d_step { \
        IS_LIVE(c) && !whole && (in_context[OWNER] & BIT(k)) != 0 -> \
        k_ = k; \
        use(c); \
        k_ = 0; \
        settle() \
    }
    :: TELL(0, 0)
    :: TELL(0, 1)
    :: TELL(1, 0)
    :: TELL(1, 1)
#endif

    :: atomic {
        frees > 0 && drawn + inside < TICKETS && MAY_FREE && (IS_LIVE(0) || IS_LIVE(1)) ->
        if
        :: IS_LIVE(0) -> set = (whole -> 3 : 1)
        :: IS_LIVE(1) -> set = 2
        fi;
        spend(frees);
        inside++;
        begin_free(0);
        begin_free(1);
        enter_gate();
        if
        :: SEEN_CAPTURING -> goto deferred
        :: else
        fi;
#ifdef WITHOUT_SEQUENCE
        goto recording
    }
#else
        draw(me, HAS_PEER(set));
        settle();
        goto recording
    }
#endif

    :: atomic {
        allocations > 0 && (IS_IDLE(0) || IS_IDLE(1)) ->
        spend(allocations);
        inside++;
        takes_pending = (MODE == ORDERED && !SEEN_CAPTURING && !registered && host_only == 0);
        goto taking
    }

    :: atomic {
        peers > 0 && !registered && !access ->
        spend(peers);
        inside++;
        registered = 1;
        if
        :: state[0] <= BUSY -> exposed[0] = 1
        :: else
        fi;
        if
        :: state[1] <= BUSY -> exposed[1] = 1
        :: else
        fi;
        settle();
        goto enabling
    }
    :: d_step { access -> access = 0; registered = 0 }

    :: d_step { captures > 0 && !capturing && holding == 0 -> spend(captures); capturing = 1 }
    :: d_step { capturing && !invalid -> invalid = 1 } /* by whatever the program does */
    :: atomic {
#ifdef WITHOUT_CLOSING
        capturing && drawn + inside < TICKETS ->
#else
        capturing && drawn + inside < TICKETS && holding == 0 ->
#endif
        capturing = 0;
        invalid = 0;
        inside++;
        goto ended
    }
#ifdef LAX_DEFERRED
    :: atomic { /* whoever asks for completed fences looks for deferred blocks, too */
        has_deferred && !SEEN_CAPTURING && drawn + inside < TICKETS ->
        inside++;
        goto ended
    }
#endif
    od;

    /* ---- free ---- */

recording:
#if defined(WITHOUT_SEQUENCE)
    atomic { assert(!capturing); taken[me] = in_context[OWNER] }
    d_step { taken[2 + me] = in_context[PEER] }
    d_step {
        draw(me, HAS_PEER(set));
        entry[AT(OWNER, number[me])] = RECORDED;
        event[AT(OWNER, number[me])] = taken[me];
        if
        :: HAS_PEER(set) ->
            entry[AT(PEER, number[me])] = RECORDED;
            event[AT(PEER, number[me])] = taken[2 + me]
        :: else
        fi;
        taken[me] = 0;
        taken[2 + me] = 0;
        learn();
        leave_gate()
    }
#elif defined(WITHOUT_RETURN) || defined(WITHOUT_MOMENT)
    atomic { leave_gate() } /* the recorder does the rest, at some time */
#else
    atomic {
#if FAILS > 0
        if
        :: fails > 0 && number[me] != 0 -> fail_record(me); settle(); goto deferred
        :: true
        fi;
#endif
        record(OWNER, number[me]);
        if
        :: PEER_IS_DUE
        :: else ->
            leave_gate();
            settle();
            goto recorded
        fi;
        settle()
    }
#if FAILS > 0
    if
    :: atomic { fails > 0 && number[me] != 0 -> fail_record(me); settle(); goto deferred }
    :: d_step { record(PEER, number[me]); leave_gate(); settle() }
    fi;
#else
    d_step { record(PEER, number[me]); leave_gate(); settle() }
#endif
recorded:
#endif
    atomic {
#ifdef WITHOUT_WAIT
        put_back(READY, 0);
#elif MODE == SYNC
        number[me] == 0 || entry[AT(OWNER, number[me])] == NOTHING ->
        if
        :: HAS_PEER(set)
        :: else -> number[me] = 0
        fi;
        put_back(PENDING, number[me]);
#else
        put_back(PENDING, number[me]);
#endif
        goto returning
    }

deferred:
#ifdef LAX_DEFERRED
    leave_gate(); /* as the code does: whoever looks next fences what came too late */
    atomic { put_back(DEFERRED, 0); settle() }
    atomic { has_deferred = 1; goto returning }
#else
#if defined(WITHOUT_GATE) || defined(WITHOUT_CLOSING)
    skip; /* the gate does not hold up the capture's end */
#endif
    atomic {
        put_back(DEFERRED, 0);
        leave_gate();
        goto returning
    }
#endif

    /* ---- allocate ---- */

taking:
    atomic {
        if
        :: set = 1
        :: set = 2
        :: set = 3
        fi;
        if
        :: ALL_READY(set) ->
            take_cells();
            goto handing
        :: ALL_IDLE(set) && !ALL_READY(set) && takes_pending && MAY_REUSE(set) && IS_RECORDED(FENCE_OF(set)) ->
            wanted[me] = FENCE_OF(set);
            take_cells();
            settle()
        :: ALL_IDLE(set) && !ALL_READY(set) && !takes_pending && MAY_WAIT_FOR(set, me) ->
            wanted[me] = FENCE_OF(set);
            set = 0;
            goto waiting
        :: else -> /* it grows, or there is no memory, or the program is left out */
            set = 0;
            goto returning
        fi
    }

    /* pending, under the fence `wanted`; what is published must not be a fence for the host only */
#if MODE == ORDERED
#ifndef WITHOUT_LOOK
    atomic {
        if
        :: registered || host_only != 0 -> goto giving_back
        :: else
        fi
    }
#endif
    if
    :: atomic { wanted[me] <= waited_for -> goto waited }
    :: d_step {
        wanted[me] > waited_for ->
        handed_out = (wanted[me] > handed_out -> wanted[me] : handed_out);
#ifdef WITHOUT_WAITED
        waited_for = handed_out;
#endif
        settle()
    }
    fi;
#endif
    atomic {
        enter_gate();
        if
        :: SEEN_CAPTURING || REGISTERED_SINCE -> leave_gate(); goto giving_back
        :: else
        fi
    }
    atomic {
        assert(!capturing);
#if FAILS > 0
        if
        :: fails > 0 -> spend(fails); leave_gate(); goto giving_back
        :: true
        fi;
#endif
        if
        :: wanted[me] != 0 && entry[AT(OWNER, wanted[me])] == RECORDED ->
            newest[0] = newest[0] | event[AT(OWNER, wanted[me])];
            newest[1] = newest[1] | event[AT(OWNER, wanted[me])];
#if MODE == ORDERED
            waited_for = (wanted[me] > waited_for -> wanted[me] : waited_for)
#endif
        :: else
        fi;
        wanted[me] = 0;
        leave_gate();
        goto handing
    }

#if MODE == ORDERED
    /* the owner waits for a later fence already */
waited:
    atomic {
        if
        :: REGISTERED_SINCE -> goto giving_back
        :: else
        fi;
        wanted[me] = 0;
        goto handing
    }
#endif

handing:
    atomic {
        if
        :: set & 1 -> state[0] = LIVE
        :: else
        fi;
        if
        :: set & 2 -> state[1] = LIVE
        :: else
        fi;
        goto returning
    }

giving_back:
    atomic {
        put_back(PENDING, wanted[me]);
        wanted[me] = 0;
        set = 0;
        takes_pending = 0;
        settle();
        goto taking
    }

waiting:
    if
    :: atomic { wanted[me] == 0 -> goto taking }
#if FAILS > 0
    :: atomic { fails > 0 -> spend(fails); wanted[me] = 0; goto returning }
#endif
    fi;

    /* ---- peer access ---- */

enabling:
#if MODE == ORDERED && !defined(WITHOUT_EXPORT_WAIT)
    wanted[me] = handed_out;
#endif
    if
    :: atomic { wanted[me] == 0 -> access = 1; goto returning }
#if FAILS > 0 /* the program hears of it */
    :: atomic { fails > 0 && wanted[me] != 0 -> spend(fails); registered = 0; goto returning }
#endif
    fi;

    /* ---- the end of a capture ---- */

ended:
    atomic {
        enter_gate();
#ifdef LAX_DEFERRED
        set = 3; /* whatever will be there */
        if
        :: SEEN_CAPTURING || !has_deferred -> leave_gate(); goto returning
        :: else
        fi;
        has_deferred = 0;
#ifdef WITHOUT_ARRIVALS
        early[me] = 3;
#else
        early[me] = (state[0] == DEFERRED) + 2 * (state[1] == DEFERRED);
#endif
#else
        set = (state[0] == DEFERRED) + 2 * (state[1] == DEFERRED);
        if
        :: SEEN_CAPTURING || set == 0 -> leave_gate(); goto returning
        :: else
        fi;
#endif
        draw(me, HAS_PEER(set));
        raise_host_only();
        settle()
    }
#ifdef WITHOUT_DEFERRED_GATE
    atomic {
        record(OWNER, number[me]);
        if
        :: PEER_IS_DUE
        :: else -> leave_gate(); settle(); goto fencing
        fi;
        settle()
    }
    d_step { record(PEER, number[me]); leave_gate(); settle() }
fencing:
    atomic { fence_all_deferred(); goto returning }
#else
    atomic {
#if FAILS > 0
        if
        :: fails > 0 && number[me] != 0 ->
            fail_record(me);
            has_deferred = 1;
            leave_gate();
            goto returning
        :: true
        fi;
#endif
        record(OWNER, number[me]);
        if
        :: PEER_IS_DUE
        :: else -> settle(); goto fencing
        fi;
        settle()
    }
    d_step { record(PEER, number[me]); settle() }
fencing:
    atomic { fence_all_deferred(); leave_gate(); goto returning }
#endif

returning:
    atomic {
        set = 0;
        takes_pending = 0;
        number[me] = 0;
        wanted[me] = 0;
#ifdef LAX_DEFERRED
        early[me] = 0;
#endif
        inside--;
        settle();
        goto end
    }
}

#if defined(WITHOUT_RETURN) || defined(WITHOUT_MOMENT)
#define RECORD(context, ticket) \
    d_step { !SEEN_CAPTURING && entry[AT(context, ticket)] == RECORDING -> record(context, ticket) }

active proctype recorder() {
end:
    do
    :: RECORD(OWNER, 1)
    :: RECORD(OWNER, 2)
    :: RECORD(OWNER, 3)
    :: RECORD(PEER, 1)
    :: RECORD(PEER, 2)
    :: RECORD(PEER, 3)
    od
}
#endif

init {
    atomic {
        run thread(0);
        run thread(1)
    }
}
