package run

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// asking are the claims that have something to say about a Job, by its key.
type asking struct {
	mu    sync.Mutex
	byKey map[string][]types.UID
}

func (a *asking) put(key string, uids ...types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byKey == nil {
		a.byKey = map[string][]types.UID{}
	}
	for _, uid := range uids {
		if !slices.Contains(a.byKey[key], uid) {
			a.byKey[key] = append(a.byKey[key], uid)
		}
	}
}

// take returns the claims of a Job, once.
func (a *asking) take(key string) []types.UID {
	a.mu.Lock()
	defer a.mu.Unlock()
	uids := a.byKey[key]
	delete(a.byKey, key)
	return uids
}
