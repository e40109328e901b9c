------------------------------ MODULE Election ------------------------------
(***************************************************************************)
(* The small election of Quorate's benchmarks: rounds, votes and receive   *)
(* buckets. It is the model of checker/models/small_election.py and of     *)
(* benchmarks/spin/election.pml, and has the same states: 6,544 for three  *)
(* servers, 13,822,383 for four.                                           *)
(*                                                                         *)
(* A message is a triple: round, vote, and whether its sender has decided. *)
(* recvset[s][t] is the last vote of t that s has counted, 0 for none.     *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANT N
Servers == 1..N

VARIABLES state, round, vote, recvset, channel
vars == <<state, round, vote, recvset, channel>>

Nothing == [s \in Servers |-> 0]

Init ==
    /\ state = [s \in Servers |-> "not started"]
    /\ round = Nothing
    /\ vote = Nothing
    /\ recvset = [s \in Servers |-> Nothing]
    /\ channel = [s \in Servers |-> [t \in Servers |-> <<>>]]

HasMajority(votes, v) == 2 * Cardinality({t \in Servers : votes[t] = v}) > N

Larger(v, w) == IF v > w THEN v ELSE w

ToOthers(channels, s, m) ==
    [channels EXCEPT ![s] = [t \in Servers |-> IF t = s THEN @[t] ELSE Append(@[t], m)]]

\* A decided server never reads its votes again: they are cleared, so that states which behave alike are equal.
Become(s, leader) ==
    /\ state' = [state EXCEPT ![s] = IF leader = s THEN "leading" ELSE "following"]
    /\ vote' = [vote EXCEPT ![s] = leader]
    /\ recvset' = [recvset EXCEPT ![s] = Nothing]
    /\ UNCHANGED round

Start(s) ==
    /\ state[s] = "not started"
    /\ state' = [state EXCEPT ![s] = "looking"]
    /\ round' = [round EXCEPT ![s] = 1]
    /\ vote' = [vote EXCEPT ![s] = s]
    /\ recvset' = [recvset EXCEPT ![s][s] = s]
    /\ channel' = ToOthers(channel, s, <<1, s, FALSE>>)

Decide(s) ==
    /\ state[s] = "looking"
    /\ HasMajority(recvset[s], vote[s])
    /\ Become(s, vote[s])
    /\ UNCHANGED channel

\* A looking server hears a looking one.
CompareRounds(from, s, m, rest) ==
    IF m[1] < round[s]
    THEN /\ channel' = [rest EXCEPT ![s][from] = Append(@, <<round[s], vote[s], FALSE>>)]
         /\ UNCHANGED <<state, round, vote, recvset>>
    ELSE LET newer == m[1] > round[s]
             best == Larger(IF newer THEN s ELSE vote[s], m[2])
             votes == IF newer THEN Nothing ELSE recvset[s]
         IN  /\ round' = [round EXCEPT ![s] = m[1]]
             /\ vote' = [vote EXCEPT ![s] = best]
             /\ recvset' = [recvset EXCEPT ![s] = [votes EXCEPT ![s] = best, ![from] = m[2]]]
             /\ channel' = IF newer \/ best # vote[s] THEN ToOthers(rest, s, <<m[1], best, FALSE>>) ELSE rest
             /\ UNCHANGED state

\* A looking server hears a decided one; the vote of another round is ignored.
HearDecided(from, s, m, rest) ==
    /\ channel' = rest
    /\ IF m[1] # round[s]
       THEN UNCHANGED <<state, round, vote, recvset>>
       ELSE LET votes == [recvset[s] EXCEPT ![from] = m[2]]
            IN  IF (m[2] = s \/ votes[m[2]] # 0) /\ HasMajority(votes, m[2])
                THEN Become(s, m[2])
                ELSE /\ recvset' = [recvset EXCEPT ![s] = votes]
                     /\ UNCHANGED <<state, round, vote>>

\* A decided server answers a looking one.
Answer(from, s, m, rest) ==
    /\ channel' = IF m[3] THEN rest ELSE [rest EXCEPT ![s][from] = Append(@, <<round[s], vote[s], TRUE>>)]
    /\ UNCHANGED <<state, round, vote, recvset>>

\* A server that is not started receives nothing: the message stays in its channel.
Deliver(from, s) ==
    /\ state[s] # "not started"
    /\ channel[from][s] # <<>>
    /\ LET m == Head(channel[from][s])
           rest == [channel EXCEPT ![from][s] = Tail(@)]
       IN  IF state[s] # "looking" THEN Answer(from, s, m, rest)
           ELSE IF m[3] THEN HearDecided(from, s, m, rest) ELSE CompareRounds(from, s, m, rest)

Next ==
    \/ \E s \in Servers : Start(s) \/ Decide(s)
    \/ \E from, s \in Servers : Deliver(from, s)
=============================================================================
