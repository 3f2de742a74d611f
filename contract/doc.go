// Package contract is the agreement between the dispatcher and a provisioning image: the names, the
// verbs, the request, the files and the exit codes of version flex-provisioner.io/v1.
// docs/contract.md documents it for people.
//
// It is plain Go and imports nothing of Kubernetes or of this module, so that an image written in
// Go can import it alone. The dispatcher's own record on a Job is not in it. Start reading at
// Request.
package contract
