//go:build dates

package test

import (
	"testing"
	"time"
)

// Only make e2e-long asks this: no commit changes the answer.
func TestTheTableOfKubernetesIsOfToday(t *testing.T) {
	for _, fault := range outdated(rowsOfThePage(t), time.Now()) {
		t.Error(fault)
	}
}
