/*
 * Leader election among N servers (2 to 4), as a yardstick for state-space search.
 *
 * The model is the one Quorate's own engine explores in its benchmark, so that the two searches visit the
 * same states: 6,544 for three servers, 13,822,383 for four.  Rules of this file:
 *
 * - One process with one control state, every option a d_step: a state of SPIN is a state of the model.
 * - Everything is kept canonical (free slots are zero), so that equal states are equal bytes.
 * - The layout favours SPIN: a channel is one int, a recvset one short, and temporaries are hidden.
 *
 * A server LOOKING or decided has st, round, vote and recvset.  All zxids are equal, so a vote is the id of
 * a server and the better vote is the higher id.  Nothing here starts a second round, so that one bit holds
 * it; the rules for other rounds are written out all the same, and the search pays for their comparisons.
 */

#ifndef N
#define N 3
#endif
#if N < 2 || N > 4
#error "election.pml packs votes in two bits: N must be 2, 3 or 4"
#endif

#define NOT_STARTED 0
#define LOOKING     1
#define LEADING     2
#define FOLLOWING   3

byte  st[N];
byte  round[N];
byte  vote[N];
short recvset[N];        /* three bits for each server: its recorded vote plus one, 0 when none */
int   queue[N * (N - 1)]; /* four bits for each message, the head lowest */

/* Temporaries of one step; hidden keeps them out of the state. */
hidden int   msg;
hidden byte  m_round;
hidden byte  m_vote;
hidden byte  best;
hidden byte  announce;

/* A message: round (1 bit, never 0 in flight), decided (1 bit), vote (2 bits).  A decided sender leads if
   the vote is itself and follows otherwise, so LEADING and FOLLOWING need no bit of their own. */
#define MESSAGE(r, decided, v) (((r) << 3) | ((decided) << 2) | (v))
#define ROUND(m)   ((m) >> 3)
#define DECIDED(m) (((m) >> 2) & 1)
#define VOTE(m)    ((m) & 3)

#define AT(from, to) ((from) * (N - 1) + ((to) > (from) -> (to) - 1 : (to)))

/* The position of the first free slot.  No channel ever holds more than seven messages (a sender has at
   most N votes to tell, and answers at most N - 1 messages); the assertion in append makes sure. */
#define FREE(c) ((c) == 0 -> 0 : ((c) < 16 -> 4 : ((c) < 256 -> 8 : ((c) < 4096 -> 12 : \
                ((c) < 65536 -> 16 : ((c) < 1048576 -> 20 : 24))))))

#define RECORDED(me, other) ((recvset[me] >> (3 * (other))) & 7)
#define HAS(me, other, v)   (RECORDED(me, other) == (v) + 1)

#if N == 2
#define COUNT(me, v) (HAS(me, 0, v) + HAS(me, 1, v))
#elif N == 3
#define COUNT(me, v) (HAS(me, 0, v) + HAS(me, 1, v) + HAS(me, 2, v))
#else
#define COUNT(me, v) (HAS(me, 0, v) + HAS(me, 1, v) + HAS(me, 2, v) + HAS(me, 3, v))
#endif
#define MAJORITY(me, v) (2 * COUNT(me, v) > N)

inline append(from, to, m) {
    assert(queue[AT(from, to)] < 16777216);
    queue[AT(from, to)] = queue[AT(from, to)] | ((m) << FREE(queue[AT(from, to)]))
}

inline append_unless_me(me, to, m) {
    if
    :: (me) != (to) -> append(me, to, m)
    :: else
    fi
}

inline send_to_all(me, m) {
    append_unless_me(me, 0, m);
    append_unless_me(me, 1, m);
#if N > 2
    append_unless_me(me, 2, m);
#endif
#if N > 3
    append_unless_me(me, 3, m);
#endif
}

inline record(me, other, v) {
    recvset[me] = (recvset[me] & ~(7 << (3 * (other)))) | (((v) + 1) << (3 * (other)))
}

/* A decided server forgets its recvset, which nothing reads any more. */
inline become_decided(me, v) {
    st[me] = ((v) == (me) -> LEADING : FOLLOWING);
    vote[me] = v;
    recvset[me] = 0
}

/* A LOOKING server hears a LOOKING one. */
inline hear_looking(me, from) {
    if
    :: m_round < round[me] ->
        append(me, from, MESSAGE(round[me], 0, vote[me]))
    :: else ->
        if
        :: m_round > round[me] ->
            round[me] = m_round;
            recvset[me] = 0;
            best = (m_vote > (me) -> m_vote : (me));
            announce = true
        :: else ->
            announce = (m_vote > vote[me]);
            best = (announce -> m_vote : vote[me])
        fi;
        vote[me] = best;
        record(me, me, best);
        record(me, from, m_vote);
        if
        :: announce -> send_to_all(me, MESSAGE(round[me], 0, best))
        :: else
        fi
    fi
}

/* A LOOKING server hears a decided one; of another round it is ignored. */
inline hear_decided(me, from) {
    if
    :: m_round == round[me] ->
        record(me, from, m_vote);
        if
        :: MAJORITY(me, m_vote) && (m_vote == (me) || RECORDED(me, m_vote) != 0) ->
            become_decided(me, m_vote)
        :: else
        fi
    :: else
    fi
}

/* A server not started receives nothing: the message stays in its channel. */
inline deliver(from, me) {
    d_step {
        st[me] != NOT_STARTED && queue[AT(from, me)] != 0 ->
        msg = queue[AT(from, me)] & 15;
        queue[AT(from, me)] = queue[AT(from, me)] >> 4;
        m_round = ROUND(msg);
        m_vote = VOTE(msg);
        if
        :: st[me] == LOOKING && !DECIDED(msg) -> hear_looking(me, from)
        :: st[me] == LOOKING && DECIDED(msg) -> hear_decided(me, from)
        :: st[me] != LOOKING && !DECIDED(msg) ->
            append(me, from, MESSAGE(round[me], 1, vote[me]))
        :: st[me] != LOOKING && DECIDED(msg)
        fi
    }
}

inline start(me) {
    d_step {
        st[me] == NOT_STARTED ->
        st[me] = LOOKING;
        round[me] = 1;
        vote[me] = me;
        record(me, me, me);
        send_to_all(me, MESSAGE(1, 0, me))
    }
}

inline decide(me) {
    d_step {
        st[me] == LOOKING && MAJORITY(me, vote[me]) ->
        become_decided(me, vote[me])
    }
}

active proctype ensemble() {
end:
    do
    :: start(0)
    :: start(1)
    :: decide(0)
    :: decide(1)
    :: deliver(0, 1)
    :: deliver(1, 0)
#if N > 2
    :: start(2)
    :: decide(2)
    :: deliver(0, 2)
    :: deliver(1, 2)
    :: deliver(2, 0)
    :: deliver(2, 1)
#endif
#if N > 3
    :: start(3)
    :: decide(3)
    :: deliver(0, 3)
    :: deliver(1, 3)
    :: deliver(2, 3)
    :: deliver(3, 0)
    :: deliver(3, 1)
    :: deliver(3, 2)
#endif
    od
}
