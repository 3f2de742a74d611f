package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// The claims of one namespace, however many are enqueued, hold up none of another.
func TestTheQueueTakesOneUIDOfEachNamespaceInTurn(t *testing.T) {
	q := newFairQueue(func(uid types.UID) string {
		namespace, _, _ := strings.Cut(string(uid), "-")
		return namespace
	})
	for i := range 1000 {
		q.Push(types.UID(fmt.Sprint("many-", i)))
	}
	q.Push("few-0")
	q.Push("few-1")
	q.Push("one-0")
	var got []types.UID
	for range 7 {
		got = append(got, q.Pop())
	}
	q.Push("few-2")
	got = append(got, q.Pop(), q.Pop())
	want := []types.UID{"many-0", "few-0", "one-0", "many-1", "few-1", "many-2", "many-3", "many-4", "few-2"}
	if !slices.Equal(got, want) || q.Len() != 995 {
		t.Errorf("taken: %v, want %v; %d are left", got, want, q.Len())
	}
	for q.Len() > 0 {
		q.Pop()
	}
	if len(q.waiting) != 0 || len(q.turns) != 0 {
		t.Errorf("an empty queue keeps %d namespaces and %d turns", len(q.waiting), len(q.turns))
	}
}
