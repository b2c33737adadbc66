/*
 * A model of the only stream, for spin: of how the library knows that all work goes to one stream,
 * and hands out freed blocks without a fence meanwhile. docs/internals/safety.md tells the argument;
 * interpose/features/gate/ and interpose/table/counter.h are the code, whose reads and writes of what
 * threads share are a step each here. A submission's count is not ordered by a barrier, so others may
 * see it late, but not after the device sees the work. How a fence finds its block's next owner is the subject of free.pml;
 * here a fence is the set of kernels that its block waits for.
 *
 * One context with the streams 0 and 1, another with the stream OTHER; one or two cells of memory in
 * the first (CELLS); threads that run every program there is out of what the defines allow. Kernels end in any
 * order that streams and waits allow, as late as they like; some only after a later one of their
 * thread (NEEDS).
 *
 * Asserted:
 *   safety    unordered == 0   a kernel runs only after those of its memory's earlier owners that were
 *                              submitted before the free
 *   waited    before == 0      what was submitted before a free in sync is complete after it
 *   capture   !capturing       no stream is made to wait for another while something captures
 *   destroyed !destroyed       nothing is recorded in a stream that is destroyed
 *   progress  pending == 0     when nothing can move, every kernel has completed ...
 *             inside == 0      ... and every call has returned
 *
 * Defines. MODE; THREADS; FIRST: MANY, to begin there; BLOCKING: stream 0 is the legacy stream, and waits for stream 1 as that
 * does for it. KERNELS, FREES, ...: how often each may happen, in all. WITHOUT_x removes the
 * safeguard x; LIMIT_x allows programs that are documented as limits. Each of these must make an
 * assertion fail.
 */

#define SYNC    1
#define LAZY    2
#define ORDERED 3

#ifndef MODE
#define MODE LAZY
#endif
#ifndef THREADS
#define THREADS 2
#endif
#ifndef CELLS
#define CELLS 1
#endif
#ifndef KERNELS
#define KERNELS 3  /* on a block */
#endif
#ifndef FREES
#define FREES 2
#endif
#ifndef ALLOCATIONS
#define ALLOCATIONS 1
#endif
#ifndef NEEDS
#define NEEDS 0    /* kernels that end only after one that their thread submits later */
#endif
#ifndef TRIALS
#define TRIALS 0
#endif
#ifndef WAITS
#define WAITS 0    /* by the program, for the context */
#endif
#ifndef STREAM_WAITS
#define STREAM_WAITS 0
#endif
#ifndef DESTROYS
#define DESTROYS 0 /* of a stream, whose handle the next one gets */
#endif
#ifndef CHECKS
#define CHECKS 0   /* self-checks */
#endif
#ifndef PEERS
#define PEERS 0    /* the other context gets access, and may lose it */
#endif
#ifndef EXPORTS
#define EXPORTS 0  /* another process gets access */
#endif
#ifndef CAPTURES
#define CAPTURES 0
#endif
#ifndef HIDES
#define HIDES 0    /* look-ups of a call that submits work unseen */
#endif
#ifndef BURSTS
#define BURSTS 0   /* whether frees share a fence */
#endif
#ifndef FAILS
#define FAILS 0    /* records of the library */
#endif

#define BIT(i) (1 << (i))
#define ALL_KERNELS (KERNELS + 2 * NEEDS)

/* ---- the device ---- */

#define OTHER 2

byte pending;              /* kernels submitted and not complete */
byte in_owner;             /* those of the context that owns the memory */
byte newest[3];            /* by stream: what its next kernel waits for ... */
byte barrier;              /* ... and that of any stream of the owner */
byte after[ALL_KERNELS];   /* what a kernel waits for, with all that those wait for */
byte unpaid;               /* the kernel that needs one which is not submitted yet */
bit access;                /* OTHER can reach the memory */
bit capturing;
bit destroyed[2];          /* streams */

/* Watched, not used: */
byte users[2], past[2];    /* of a cell: kernels of its owner, of earlier ones */
byte before[THREADS];      /* what had been submitted when the thread's free began */

/* ---- the library ---- */

#define LIVE     0
#define BUSY     1
#define READY    2
#define PENDING  3
#define DEFERRED 4

byte state[2];
byte fence[2];             /* the kernels that the cell waits for */

#define NONE_YET 3         /* what the word is when it is no stream */
#define CHANGING 4
#define MANY     5
#define NO_STREAM 6

#ifndef FIRST
#define FIRST NONE_YET
#endif
byte word = FIRST;
byte leaving = NO_STREAM, partner = NO_STREAM;
bit lock;
byte count[THREADS];       /* of submissions; odd: inside one */
bit late[THREADS];         /* the count has risen, and others do not see that yet */
byte freed, ordered;
byte bars;
byte trial, succeeded;
bit has_proof;
byte proof;                /* the kernels of the fence that proves the last trial */
bit peer_known;
bit concealed;
byte announced;            /* kernels that the context was made to wait for */
byte waited_for;           /* sync: the sum of submissions at the last wait for the context */
bit shares_fence[THREADS]; /* whether the thread's last fence is known to be shareable ... */
byte last_sum[THREADS];    /* ... while the sum is this */
byte last_fence[THREADS];
byte held[THREADS];        /* kernels that a call under way has recorded, or waits for */

/* ---- the program ---- */

byte kernels = KERNELS, frees = FREES, allocations = ALLOCATIONS, needs = NEEDS, trials = TRIALS,
     waits = WAITS, stream_waits = STREAM_WAITS, destroys = DESTROYS, checks = CHECKS, peers = PEERS,
     exports = EXPORTS, captures = CAPTURES, hides = HIDES, fails = FAILS;
byte inside;               /* calls under way */
bit unseen;                /* it has a call that submits work unseen */
bit needy;                 /* a kernel that needs another is submitted, or about to be */
byte stream_used[THREADS]; /* plus one: that of a submission or a wait under way */
bit closed[2];             /* a stream that the program is destroying */
byte debt[THREADS];        /* plus one: the kernel that needs one of this thread */
byte blocked;              /* the stream of the unpaid kernel */

hidden byte i_;

inline leave_sets(k) {
    pending = pending & ~BIT(k);
    in_owner = in_owner & ~BIT(k);
    barrier = barrier & ~BIT(k);
    proof = proof & ~BIT(k);
    announced = announced & ~BIT(k);
    i_ = 0;
    do
    :: i_ == 3 -> break
    :: else -> newest[i_] = newest[i_] & ~BIT(k); i_++
    od;
    i_ = 0;
    do
    :: i_ == ALL_KERNELS -> break
    :: else -> after[i_] = after[i_] & ~BIT(k); i_++
    od;
    i_ = 0;
    do
    :: i_ == 2 -> break
    :: else ->
        users[i_] = users[i_] & ~BIT(k);
        past[i_] = past[i_] & ~BIT(k);
        fence[i_] = fence[i_] & ~BIT(k);
        if
        :: state[i_] == PENDING && fence[i_] == 0 -> state[i_] = READY
        :: else
        fi;
        i_++
    od;
    i_ = 0;
    do
    :: i_ == THREADS -> break
    :: else ->
        before[i_] = before[i_] & ~BIT(k);
        held[i_] = held[i_] & ~BIT(k);
        last_fence[i_] = last_fence[i_] & ~BIT(k);
        i_++
    od;
    i_ = 0
}

/* Where no sum is kept for later, it matters only whether a thread is inside a submission. */
#if MODE == SYNC || WAITS > 0 || BURSTS > 0
#define NEXT(count) ((count) + 1)
#else
#define NEXT(count) (1 - (count))
#endif

inline show_count(t) {
    if
    :: late[t] -> late[t] = 0; count[t] = NEXT(count[t])
    :: else
    fi
}

#define RUNNABLE(k) ((pending & BIT(k)) != 0 && after[k] == 0 && (unpaid & BIT(k)) == 0)

/* Completes kernels, and sees that the fence of a trial is complete. */
active proctype device() {
end:
    do
#define COMPLETE(k) d_step { RUNNABLE(k) -> leave_sets(k) }
#if ALL_KERNELS > 0
    :: COMPLETE(0)
#endif
#if ALL_KERNELS > 1
    :: COMPLETE(1)
#endif
#if ALL_KERNELS > 2
    :: COMPLETE(2)
#endif
#if ALL_KERNELS > 3
    :: COMPLETE(3)
#endif
#if ALL_KERNELS > 4
    :: COMPLETE(4)
#endif
    :: d_step { late[0] -> show_count(0) }
    :: d_step { late[1] -> show_count(1) }
#if THREADS > 2
    :: d_step { late[2] -> show_count(2) }
#endif
#ifdef WITHOUT_PROOF
    :: d_step { succeeded != trial && word != MANY && !lock -> succeeded = trial }
#else
    :: d_step { has_proof && proof == 0 && succeeded != trial && word != MANY && !lock ->
                succeeded = trial }
#endif
    od
}

active proctype monitor() {
    atomic {
        timeout ->
        assert(pending == 0);
        assert(inside == 0);
        assert(state[0] != DEFERRED && state[1] != DEFERRED)
    }
}

#ifdef BLOCKING
#define ALSO(stream) ((stream) < 2 -> newest[1 - (stream)] : 0)
#else
#define ALSO(stream) 0
#endif

/* Submits a kernel, whose number is left in k_. */
hidden byte k_, unordered;
inline submit(stream) {
    k_ = 0;
    do
    :: (pending & BIT(k_)) == 0 -> break
    :: else -> k_++
    od;
    after[k_] = newest[stream] | ALSO(stream);
    if
    :: stream < OTHER ->
        after[k_] = after[k_] | barrier;
        in_owner = in_owner | BIT(k_)
    :: else
    fi;
    newest[stream] = BIT(k_) | after[k_];
    pending = pending | BIT(k_)
}

/* What a kernel waits for is known when it is submitted. */
inline use(c) {
    unordered = past[c] & ~after[k_];
    assert(unordered == 0);
    users[c] = users[c] | BIT(k_)
}

/* ---- counting submissions ---- */

#ifdef WITHOUT_HIDING
#define IS_HIDDEN false
#else
#define IS_HIDDEN concealed
#endif
#ifdef WITHOUT_INSIDE
#define IS_OUTSIDE(t) true
#else
#define IS_OUTSIDE(t) (count[t] % 2 == 0)
#endif

/* Threads are read one after the other. */
inline count_submissions() {
#if THREADS == 2
    d_step {
        known = (!IS_HIDDEN && IS_OUTSIDE(0) && IS_OUTSIDE(1));
        sum = count[0] + count[1]
    }
#else
    d_step { known = (!IS_HIDDEN && IS_OUTSIDE(0)); sum = count[0] };
    d_step { known = known && IS_OUTSIDE(1); sum = sum + count[1] };
    d_step { known = known && IS_OUTSIDE(2); sum = sum + count[2] }
#endif
}

#if THREADS > 2
#define USES_STREAM(s) (stream_used[0] == (s) + 1 || stream_used[1] == (s) + 1 || stream_used[2] == (s) + 1)
#else
#define USES_STREAM(s) (stream_used[0] == (s) + 1 || stream_used[1] == (s) + 1)
#endif

/*
 * Programs that are left out, as the limit says: a kernel waits for what its thread does later, and
 * while it does, a change could make that wait for the kernel.
 */
#ifdef LIMIT_NEED
#define MAY_NEED true
#define MAY_FREE (debt[me] == 0)
#else
#define MAY_NEED (inside == 0 && freed == ordered)
#define MAY_FREE (MODE == SYNC -> debt[me] == 0 : !needy)
#endif

#define WORK 0
#define NEED 1
#define PAY  2

/* Where a change of the word returns to. */
#define TO_SUBMIT  0
#define TO_SHARE   1
#define TO_DESTROY 2
#define TO_CAPTURE 3
#define TO_HIDE    4

/* Of three threads, to bound the search, one only begins trials, and one only waits. */
#if THREADS > 2
#define IS_WORKER (me == 0)
#define IS_TRIER (me == 1)
#define IS_WAITER (me == 2)
#else
#define IS_WORKER true
#define IS_TRIER true
#define IS_WAITER true
#endif

proctype thread(byte me) {
    byte cell, stream, kind, seen, goal, frees_seen, number, sum, sum_before;
    bit known, known_before, waiting;

end:
    do
#define SUBMIT(s) \
    atomic { \
        IS_WORKER && kernels > 0 && ((s) < OTHER -> !closed[(s) % 2] && !destroyed[(s) % 2] : access) -> \
        kernels--; stream = s; stream_used[me] = (s) + 1; inside++; goto submitting \
    }
    :: SUBMIT(0)
    :: SUBMIT(1)
#if PEERS + EXPORTS > 0
    :: SUBMIT(OTHER)
#endif

#if NEEDS > 0
#define SUBMIT_NEED(s) \
    atomic { \
        needs > 0 && !needy && MAY_NEED -> \
        needs--; needy = 1; stream = s; kind = NEED; stream_used[me] = (s) + 1; inside++; goto submitting \
    }
#define SUBMIT_PAY(s) \
    atomic { \
        debt[me] != 0 && blocked != (s) -> \
        stream = s; kind = PAY; stream_used[me] = (s) + 1; inside++; goto submitting \
    }
    :: SUBMIT_NEED(0)
    :: SUBMIT_NEED(1)
    :: SUBMIT_PAY(0)
    :: SUBMIT_PAY(1)
#endif

#define FREE(c) \
    atomic { \
        IS_WORKER && frees > 0 && state[c] == LIVE && MAY_FREE -> \
        frees--; cell = c; inside++; state[c] = BUSY; \
        past[c] = past[c] | (users[c] & COVERED); \
        users[c] = 0; \
        before[me] = pending & in_owner; \
        goto freeing \
    }
#if EXPORTS > 0
#define COVERED in_owner /* a free waits for no other process, natively either */
#else
#define COVERED 255
#endif
    :: FREE(0)
#if CELLS > 1
    :: FREE(1)
#endif

#define ALLOCATE(c) \
    d_step { IS_WORKER && allocations > 0 && state[c] == READY -> allocations--; state[c] = LIVE }
    :: ALLOCATE(0)
#if CELLS > 1
    :: ALLOCATE(1)
#endif
#if MODE == ORDERED
#define REORDER(c) \
    atomic { \
        allocations > 0 && state[c] == PENDING && !peer_known && !capturing && unpaid == 0 -> \
        allocations--; cell = c; inside++; state[c] = BUSY; goto reordering \
    }
    :: REORDER(0)
#if CELLS > 1
    :: REORDER(1)
#endif
#endif

#if WAITS > 0
    :: atomic { IS_WAITER && waits > 0 && debt[me] == 0 -> waits--; inside++; goto waiting_for_context }
#endif
#if STREAM_WAITS > 0
#define WAIT(s) \
    atomic { \
        stream_waits > 0 && debt[me] == 0 && !closed[s] && !destroyed[s] -> \
        stream_waits--; stream = s; stream_used[me] = (s) + 1; inside++; goto waiting_for_stream \
    }
    :: WAIT(0)
    :: WAIT(1)
#endif
#if DESTROYS > 0
#define DESTROY(s) \
    atomic { \
        destroys > 0 && !USES_STREAM(s) && !closed[s] && !destroyed[s] && (unpaid == 0 || blocked != (s)) -> \
        destroys--; stream = s; closed[s] = 1; inside++; goto destroying \
    }
    :: DESTROY(0)
    :: DESTROY(1)
    :: d_step { destroyed[0] -> destroyed[0] = 0 } /* the next stream has the same handle */
    :: d_step { destroyed[1] -> destroyed[1] = 0 }
#endif
#if TRIALS > 0 /* after the fence of a free, of whatever block */
    :: atomic { IS_TRIER && trials > 0 -> trials--; inside++; goto trying }
#endif
#if CHECKS > 0
    :: atomic { checks > 0 -> checks--; inside++; goto checking }
#endif
#if PEERS > 0
    :: atomic { peers > 0 && !peer_known -> peers--; inside++; peer_known = 1; goto sharing }
    :: d_step { access && (pending & ~in_owner) == 0 && !USES_STREAM(OTHER) -> access = 0; peer_known = 0 }
#endif
#if EXPORTS > 0
    :: atomic { exports > 0 -> exports--; inside++; goto sharing }
#endif
#if CAPTURES > 0
    :: atomic { captures > 0 && !capturing -> captures--; inside++; goto capturing_begins }
    :: d_step { capturing && !lock ->
        capturing = 0;
        i_ = 0;
        do
        :: i_ == 2 -> break
        :: else ->
            if
            :: state[i_] == DEFERRED ->
                fence[i_] = pending & in_owner;
                state[i_] = (fence[i_] == 0 -> READY : PENDING)
            :: else
            fi;
            i_++
        od;
        i_ = 0
    }
#endif
#if HIDES > 0
    :: atomic { hides > 0 -> hides--; inside++; goto hiding }
#endif
    od;

    /* ---- a submission ---- */

submitting:
#if EXPORTS > 0
    if
    :: stream == OTHER -> goto submitting_really /* another process */
    :: else
    fi;
#endif
#if HIDES > 0
    if
    :: unseen -> goto submitting_really /* perhaps by a call that is not seen */
    :: true
    fi;
#endif
#ifndef WITHOUT_COUNT_FIRST
    late[me] = 1;
#endif
    atomic { /* bfc_submission_begin */
        if
        :: word == stream || word == MANY -> goto submitting_really
        :: else
        fi
    }
    atomic { seen = word };
    atomic { /* bfc_only_stream_meet */
        if
        :: seen == 0 && stream == partner -> goto submitting_really
        :: seen == CHANGING && stream == leaving -> goto submitting_really
        :: else
        fi
    }
    atomic { !lock -> lock = 1; goal = TO_SUBMIT };
    atomic { /* meet_stream */
        if
        :: word == MANY || word == stream -> lock = 0; goto submitting_really
        :: else
        fi;
        if
        :: word == NONE_YET -> word = stream; lock = 0; goto submitting_really
        :: else
        fi;
        if
#if defined(BLOCKING) || defined(WITHOUT_FLAGS)
        :: (word == 0 || stream == 0) && word + stream == 1 && partner == NO_STREAM -> partner = 1
#endif
        :: else -> goto changing
        fi
    }
    atomic { word = 0; lock = 0 };

submitting_really:
    atomic { show_count(me) };
    atomic {
        submit(stream);
        if
        :: kind == WORK ->
            if
            :: state[0] == LIVE -> use(0)
#if CELLS > 1
            :: state[1] == LIVE -> use(1)
#endif
            :: true /* on no block */
            fi
        :: kind == NEED -> unpaid = BIT(k_); blocked = stream; debt[me] = k_ + 1
        :: kind == PAY ->
            unpaid = 0;
            needy = 0;
            blocked = 0;
            after[debt[me] - 1] = after[debt[me] - 1] | BIT(k_) | after[k_];
            debt[me] = 0
        fi;
        k_ = 0
    }
#ifdef WITHOUT_COUNT_FIRST
    atomic { count[me] = NEXT(count[me]) };
#endif
    atomic {
        if
        :: count[me] % 2 == 1 -> count[me] = NEXT(count[me])
        :: else
        fi;
        goto returning
    }

    /* ---- set_many, under the lock ---- */

changing:
    atomic {
        if
        :: word == MANY -> goto changed
        :: else
        fi;
        leaving = word;
#ifdef WITHOUT_WORD_FIRST
        frees_seen = freed;
#endif
    }
#ifdef WITHOUT_CHANGING
    word = MANY;
#else
    word = CHANGING;
#endif
#ifdef WITHOUT_ORDER
    goto ordered_all;
#endif
    atomic {
#ifndef WITHOUT_WORD_FIRST
        frees_seen = freed;
#endif
        if
        :: frees_seen == ordered -> goto ordered_all
        :: else
        fi
    }
    atomic {
        assert(!capturing);
        held[me] = pending & in_owner;
        if
        :: fails > 0 -> fails--; goto ordering_on_host
        :: true
        fi;
        announced = announced | held[me]
    }
    atomic {
        barrier = barrier | held[me];
        held[me] = 0;
        goto noting
    }
ordering_on_host:
    atomic { held[me] == 0 };
noting:
    atomic { ordered = (frees_seen > ordered -> frees_seen : ordered) };
ordered_all:
    word = MANY;
changed:
    atomic {
        lock = 0;
        frees_seen = 0;
        if
        :: goal == TO_SUBMIT -> goto submitting_really
        :: goal == TO_SHARE -> goto shared
        :: goal == TO_DESTROY -> goto destroying_really
        :: goal == TO_CAPTURE -> goto capturing_really
        :: goal == TO_HIDE -> goto shown
        fi
    }

    /* ---- free ---- */

freeing:
#if MODE == SYNC
    count_submissions();
    atomic { /* wait_for_work */
        if
        :: known && sum == waited_for -> goto waited
        :: else -> held[me] = pending & in_owner
        fi
    }
    atomic {
        held[me] == 0 ->
        if
        :: known -> waited_for = sum
        :: else
        fi
    }
waited:
    atomic {
        assert(before[me] == 0);
        state[cell] = READY;
        goto returning
    }
#else
#if PEERS > 0 && !defined(WITHOUT_PEERS)
    atomic {
        if
        :: peer_known -> goto fencing
        :: else
        fi
    }
#endif
#if HIDES > 0
    atomic { /* bfc_only_stream_orders */
        if
        :: IS_HIDDEN -> goto fencing
        :: else
        fi
    }
#endif
    atomic {
        if
        :: word == NONE_YET -> goto asking
        :: word == MANY || word == CHANGING -> goto fencing
        :: else
        fi
    }
#ifdef WITHOUT_FREED_FIRST
    atomic { seen = word };
    freed++;
#else
    freed++;
    atomic { seen = word };
#endif
    if
    :: seen == MANY || seen == CHANGING -> goto fencing
    :: else
    fi;
asking:
    number = trial;
    atomic {
#ifdef WITHOUT_SUCCESS
        true;
#else
        if
        :: succeeded != number -> goto fencing
        :: else
        fi
#endif
    }
    atomic { state[cell] = READY; goto returning }

fencing:
#if BURSTS > 0
    count_submissions();
    atomic {
        if
        :: known && !peer_known && shares_fence[me] && last_sum[me] == sum ->
            fence[cell] = last_fence[me];
            state[cell] = (fence[cell] == 0 -> READY : PENDING);
            goto returning
        :: else
        fi
    }
#endif
    atomic {
        if
        :: capturing || fails > 0 ->
            if
            :: capturing
            :: else -> fails--
            fi;
            state[cell] = (capturing -> DEFERRED : PENDING);
            fence[cell] = pending; /* some later fence, when it did not begin now */
            if
            :: state[cell] == PENDING && fence[cell] == 0 -> state[cell] = READY
            :: else
            fi;
            goto returning
        :: !capturing
        fi;
        fence[cell] = (peer_known -> pending : pending & in_owner);
        state[cell] = (fence[cell] == 0 -> READY : PENDING);
#if BURSTS > 0
        shares_fence[me] = (known && !peer_known);
        last_sum[me] = (shares_fence[me] -> sum : 0);
        last_fence[me] = (shares_fence[me] -> pending & in_owner : 0);
#endif
        goto returning
    }
#endif

    /* ---- trials ---- */

#if TRIALS > 0
trying:
    atomic {
        !lock ->
        lock = 1;
#ifdef WITHOUT_LATER_PROOF
        held[me] = pending & in_owner
#endif
    }

#ifdef WITHOUT_BARS
#define MAY_TRY (!peer_known && !capturing)
#else
#define MAY_TRY (bars == 0 && !capturing && (!peer_known PEER_FORGOTTEN))
#endif
#ifdef WITHOUT_PEERS
#define PEER_FORGOTTEN || true
#else
#define PEER_FORGOTTEN
#endif

beginning_trial: /* under the lock */
    atomic {
        if
        :: word != MANY || !MAY_TRY -> lock = 0; goto returning
        :: else
        fi
    }
#ifndef WITHOUT_NEW_TRIAL
    trial++;
#endif
    atomic {
#ifndef WITHOUT_NEW_PROOF
        has_proof = 0;
        proof = 0;
#endif
        partner = NO_STREAM
    }
#ifndef WITHOUT_TRIAL_WORD_FIRST
    word = NONE_YET;
#endif
#ifndef WITHOUT_BARRIER
    d_step {
        show_count(0);
        show_count(1);
#if THREADS > 2
        show_count(2);
#endif
    };
#endif
    count_submissions();
#ifdef WITHOUT_TRIAL_WORD_FIRST
    word = NONE_YET;
#endif
    atomic {
        if
        :: !known -> goto giving_up
#ifdef WITHOUT_SAME_SUM
        :: known && waiting -> succeeded = trial; lock = 0; goto returning
#endif
        :: known && waiting && sum != sum_before -> goto giving_up
        :: known && waiting && sum == sum_before -> succeeded = trial; lock = 0; goto returning
        :: else -> number = trial; lock = 0
        fi;
        known = 0;
        sum = 0
    }
    atomic { /* the proof is a fence that is recorded now */
        if
        :: capturing -> goto returning
        :: fails > 0 ->
            fails--;
#ifdef WITHOUT_RECORDED_PROOF
            held[me] = 0
#else
            goto returning
#endif
        :: !capturing ->
#ifndef WITHOUT_LATER_PROOF
            held[me] = pending & in_owner
#endif
        fi
    }
    atomic { !lock -> lock = 1 };
    atomic {
        if
#ifdef WITHOUT_NUMBER
        :: true ->
#else
        :: number == trial ->
#endif
            has_proof = 1;
            proof = held[me]
        :: else
        fi;
        lock = 0;
        goto returning
    }
giving_up:
    atomic { word = MANY; lock = 0; goto returning }
#endif

    /* ---- allocate ---- */

#if MODE == ORDERED
reordering:
    atomic { announced = announced | fence[cell] };
    atomic {
        if
        :: peer_known || capturing ->
            state[cell] = (fence[cell] == 0 -> READY : PENDING);
            goto returning
        :: else
        fi;
        barrier = barrier | fence[cell];
        fence[cell] = 0;
        state[cell] = LIVE;
        goto returning
    }
#endif

    /* ---- the program's waits ---- */

#if WAITS > 0
waiting_for_context:
#ifdef WITHOUT_MOMENT_UNDER_LOCK
    atomic { number = trial };
#else
    atomic { !lock -> number = trial };
#endif
    atomic { frees_seen = freed };
    count_submissions();
    atomic { held[me] = pending & in_owner; known_before = known; sum_before = sum };
#ifdef WITHOUT_EARLY_MOMENT
    atomic { frees_seen = freed };
    count_submissions();
    atomic { known_before = known; sum_before = sum };
#endif
    atomic {
        held[me] == 0 ->
        if
        :: known_before -> waited_for = sum_before
        :: else
        fi
    }
    atomic { ordered = (frees_seen > ordered -> frees_seen : ordered); frees_seen = 0 };
    atomic { !lock -> lock = 1 };
    atomic {
        if
#if TRIALS > 0
        :: word == MANY && known_before && trials > 0 -> trials--; waiting = 1; goto beginning_trial
#endif
        :: word == MANY
        :: word != MANY ->
            if
#ifdef WITHOUT_SAME_TRIAL
            :: true -> succeeded = trial
#else
            :: number == trial -> succeeded = trial
            :: else
#endif
            fi
        fi;
        lock = 0;
        goto returning
    }
#endif

#if STREAM_WAITS > 0
waiting_for_stream:
    atomic { frees_seen = freed };
    atomic { held[me] = newest[stream] };
#ifdef WITHOUT_EARLY_FREED
    atomic { held[me] == 0 -> frees_seen = freed };
#else
    atomic { held[me] == 0 };
#endif
#ifdef WITHOUT_SAME_STREAM
    atomic {
        ordered = (frees_seen > ordered -> frees_seen : ordered);
        goto returning
    }
#else
    atomic {
        if
        :: word == stream
        :: else -> goto returning
        fi
    }
    atomic {
        if
        :: partner == NO_STREAM -> ordered = (frees_seen > ordered -> frees_seen : ordered)
        :: else
        fi;
        goto returning
    }
#endif
#endif

    /* ---- a stream's end ---- */

destroying:
#ifndef WITHOUT_DESTROYED
    atomic {
        if
#ifndef WITHOUT_DESTROYED_CHANGING
        :: word == CHANGING
#endif
        :: word == stream
        :: partner == stream
        :: else -> goto destroying_really
        fi
    }
    atomic { !lock -> lock = 1; goal = TO_DESTROY; goto changing };
#endif
destroying_really:
    atomic {
        newest[stream] = 0;
        closed[stream] = 0;
        destroyed[stream] = 1;
        goto returning
    }

    /* ---- a self-check ---- */

#if CHECKS > 0
checking:
#ifdef WITHOUT_LOCKED_CHECK
    atomic {
        if
        :: word < OTHER -> seen = word
        :: else -> goto returning
        fi
    }
    atomic { assert(!destroyed[seen]); goto returning }
#else
    atomic { !lock -> lock = 1 };
    atomic {
        if
        :: word < OTHER -> seen = word
        :: else -> lock = 0; goto returning
        fi
    }
    atomic { assert(!destroyed[seen]); lock = 0; goto returning }
#endif
#endif

    /* ---- others that use the memory ---- */

sharing:
#ifdef WITHOUT_LEAVING
    goto shared;
#endif
    atomic {
        !lock ->
        lock = 1;
        goal = TO_SHARE;
#if EXPORTS > 0
        bars++;
#endif
        goto changing
    }
shared:
#ifndef WITHOUT_SHARING_WAIT
    atomic { held[me] = announced };
    atomic { held[me] == 0 };
#endif
    atomic { access = 1; goto returning }

    /* ---- captures ---- */

capturing_begins:
#ifdef WITHOUT_CAPTURE_BAR
    goto capturing_really;
#endif
    atomic { !lock -> lock = 1; bars++; goal = TO_CAPTURE; goto changing };
capturing_really:
    capturing = 1;
#ifndef WITHOUT_CAPTURE_BAR
    atomic { !lock -> bars-- };
#endif
    goto returning;

    /* ---- a call that submits work unseen ---- */

hiding:
#ifdef WITHOUT_HIDING
    goto shown;
#endif
#ifdef WITHOUT_EVERY_BAR
    atomic {
        if
        :: concealed -> goto shown /* another thread does the rest */
        :: else -> concealed = 1
        fi
    }
#else
    concealed = 1;
#endif
#ifndef WITHOUT_HIDING_BAR
    atomic { !lock -> lock = 1; bars++; goal = TO_HIDE; goto changing };
#endif
shown:
    unseen = 1;
    goto returning;

returning:
    atomic {
        cell = 0;
        stream = 0;
        kind = 0;
        seen = 0;
        goal = 0;
        frees_seen = 0;
        number = 0;
        sum = 0;
        sum_before = 0;
        known = 0;
        known_before = 0;
        waiting = 0;
        held[me] = 0;
        before[me] = 0;
        stream_used[me] = 0;
        inside--;
        goto end
    }
}

init {
    atomic {
        run thread(0);
        run thread(1);
#if THREADS > 2
        run thread(2)
#endif
    }
}
