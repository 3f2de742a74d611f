package act

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// noted keeps a write in mind until the caches show it. It returns the error of one that has
// failed.
func (a *Actor) noted(answer metav1.Object, err error) error {
	if err == nil {
		a.Writes.Wrote(answer)
	}
	return err
}
