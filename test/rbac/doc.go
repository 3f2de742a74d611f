// Package rbac compares what the shipped roles allow with what the shipped accounts asked of an API
// server. [Load] reads the roles under deploy and configmaps, [Manifests.Faults] judges them as
// they are written, and [Compare] judges them by the requests of a run. [Unused] and [Provoked]
// list what a run is not expected to show, each with its reason. Only Load reads files: the rest is
// pure, so that its tests need no cluster. The end-to-end tests read the requests from the API
// server's audit log.
package rbac
