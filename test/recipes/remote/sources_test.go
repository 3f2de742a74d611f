//go:build recipes || boxes

package remote

import "github.com/flex-provisioner/flex-provisioner/contract"

// cloneOf makes a request one for a clone of the claim with this number.
func cloneOf(n int) func(*contract.Request) {
	source := claim(n)
	return func(r *contract.Request) {
		r.Source = &contract.Source{
			Kind: "PersistentVolumeClaim", Namespace: source.Namespace, Name: source.Name,
			UID: source.UID, PVName: source.PVName,
		}
	}
}
