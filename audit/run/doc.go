// Package run is the command audit at work: it reads the cluster, lists the storages and deletes
// orphans, by Jobs that it creates and starts itself. Of what it has read, the package audit says
// what is wrong. Start reading at Auditor, then Look and Fix.
package run
