/*
 * Two-phase commit of a transaction manager and N resource managers (1 to 10), after Gray and Lamport.
 *
 * The model is that of docs/examples/two_phase_commit.py: 288 states for three managers, 8,832 for five.
 * A message that was sent stays, so it may arrive any number of times.  Rules of this file:
 *
 * - One process with one control state, every option a d_step: a state of SPIN is a state of the model.
 * - The layout favours SPIN: two bits for each manager, one bit for each message.
 */

#ifndef N
#define N 3
#endif
#if N < 1 || N > 10
#error "two_phase_commit.pml has options for 1 to 10 managers"
#endif

#define WORKING   0
#define PREPARED  1
#define COMMITTED 2
#define ABORTED   3
#define OPEN      0
#define LOW_BITS  349525 /* the lower bit of each pair of twenty bits */

int   manager;     /* two bits for each */
short sent;        /* the managers that said "prepared" */
short counted;     /* those that the transaction manager has heard */
byte  coordinator; /* OPEN, COMMITTED or ABORTED, which is what it says to all */

#define STATE(m)      ((manager >> (2 * (m))) & 3)
#define BECOMES(m, s) manager = (manager & ~(3 << (2 * (m)))) | ((s) << (2 * (m)))
#define HIGH          ((manager >> 1) & LOW_BITS)
#define CONSISTENT    ((HIGH & manager) == 0 || (HIGH & ~manager) == 0)

#define MANAGER(m) \
    :: d_step { STATE(m) == WORKING -> BECOMES(m, PREPARED); sent = sent | (1 << (m)) } \
    :: d_step { STATE(m) == WORKING -> BECOMES(m, ABORTED); assert(CONSISTENT) } \
    :: d_step { coordinator == OPEN && (sent & (1 << (m))) -> counted = counted | (1 << (m)) } \
    :: d_step { coordinator != OPEN -> BECOMES(m, coordinator); assert(CONSISTENT) }

active proctype commit() {
end:
    do
    :: d_step { coordinator == OPEN && counted == (1 << N) - 1 -> coordinator = COMMITTED }
    :: d_step { coordinator == OPEN -> coordinator = ABORTED }
    MANAGER(0)
#if N > 1
    MANAGER(1)
#endif
#if N > 2
    MANAGER(2)
#endif
#if N > 3
    MANAGER(3)
#endif
#if N > 4
    MANAGER(4)
#endif
#if N > 5
    MANAGER(5)
#endif
#if N > 6
    MANAGER(6)
#endif
#if N > 7
    MANAGER(7)
#endif
#if N > 8
    MANAGER(8)
#endif
#if N > 9
    MANAGER(9)
#endif
    od
}
