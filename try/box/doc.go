// Package box runs containers as processes of this machine, without a daemon and without root: in
// Linux namespaces of its own, with the programs of this machine, on temporary file systems in
// memory. Everything that it makes ends with the process that opened it, killed or not.
//
// What it leaves out of a kubelet: the image (the programs are this machine's), a network of its
// own, limits of memory and processes, seccomp, and users beside root where an unprivileged user
// has only one. A hostPath and a claim are directories in memory, which all containers share.
package box
