//! One exhaustive search of an example of stateright: prints its figures as one line of JSON.
//!
//! `benchmarks/stateright.py` writes the modules: the unchanged examples with a function `search` at the end.

#[allow(dead_code, unused_imports)]
mod paxos;
#[allow(dead_code, unused_imports)]
mod two_phase_commit;

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let [_, example, size, threads] = &words[..] else {
        panic!("usage: EXAMPLE SIZE THREADS");
    };
    let size = size.parse().expect("a number");
    let threads = threads.parse().expect("a number of threads");
    let (states, transitions, seconds) = match example.as_str() {
        "two_phase_commit" => two_phase_commit::search(size, threads),
        "paxos" => paxos::search(size, threads),
        other => panic!("no example {other}"),
    };
    println!("{{\"states\": {states}, \"transitions\": {transitions}, \"seconds\": {seconds}}}");
}
