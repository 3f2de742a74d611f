// Package try proves a provisioner on one machine, without a cluster: the shipped dispatcher serves
// claims of a Kubernetes in memory, and the container of each Job runs as a process of this machine.
// conform says which promises it keeps. Start reading at Trial.Do.
//
// What it leaves out of a cluster: pods that mount a volume, admission but for the dispatcher's own
// judgement, the rights of a ServiceAccount beyond what every provisioner has, and what the package
// box leaves out. Time passes faster while no container is at work.
package try
