// The benchmark: claims a second of this project and of its peers, in one run on one machine.
// hack/bench.sh (make bench) brings up a control plane without kubelets for each cell of the
// table, and runs `bench cell` in it. This program makes the claims, plays the nodes, and measures;
// what it decides and computes is in its packages plan, play, audit and report, which are pure;
// process has the programs. Start at [measure].
package main
