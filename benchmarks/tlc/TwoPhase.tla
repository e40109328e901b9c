------------------------------ MODULE TwoPhase ------------------------------
(***************************************************************************)
(* Two-phase commit of a transaction manager and N resource managers,      *)
(* after Gray and Lamport. It is the model of                              *)
(* docs/examples/two_phase_commit.py and of stateright's example 2pc.rs:   *)
(* 288 states for three managers, 8,832 for five, 296,448 for seven.       *)
(*                                                                         *)
(* A message that was sent stays. So it may arrive any number of times,    *)
(* also after its receiver has decided.                                    *)
(***************************************************************************)
EXTENDS Naturals

CONSTANT N
Managers == 1..N

VARIABLES manager, coordinator, counted, sent
vars == <<manager, coordinator, counted, sent>>

\* `sent` are the managers that said "prepared", and `counted` those that the transaction manager has heard. What the
\* transaction manager says to all is its state `coordinator`.

Init ==
    /\ manager = [m \in Managers |-> "working"]
    /\ coordinator = "open"
    /\ counted = {}
    /\ sent = {}

Prepare(m) ==
    /\ manager[m] = "working"
    /\ manager' = [manager EXCEPT ![m] = "prepared"]
    /\ sent' = sent \union {m}
    /\ UNCHANGED <<coordinator, counted>>

Refuse(m) ==
    /\ manager[m] = "working"
    /\ manager' = [manager EXCEPT ![m] = "aborted"]
    /\ UNCHANGED <<coordinator, counted, sent>>

Count(m) ==
    /\ coordinator = "open"
    /\ m \in sent
    /\ counted' = counted \union {m}
    /\ UNCHANGED <<manager, coordinator, sent>>

Decide(choice) ==
    /\ coordinator = "open"
    /\ choice = "committed" => counted = Managers
    /\ coordinator' = choice
    /\ UNCHANGED <<manager, counted, sent>>

Obey(m) ==
    /\ coordinator # "open"
    /\ manager' = [manager EXCEPT ![m] = coordinator]
    /\ UNCHANGED <<coordinator, counted, sent>>

Next ==
    \/ \E m \in Managers : Prepare(m) \/ Refuse(m) \/ Count(m) \/ Obey(m)
    \/ \E choice \in {"committed", "aborted"} : Decide(choice)

Consistent == \A m, n \in Managers : ~(manager[m] = "committed" /\ manager[n] = "aborted")
=============================================================================
