package runs

import (
	"hash/maphash"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

// mostRequests is of how many Jobs the requests are kept, at most 10 KiB each.
const mostRequests = 1000

// Requests keeps what was read from the requests of Jobs. Each look at a claim needs its own, and a batch has 64 of them: reading them took a third
// of the time of serving a burst.
type Requests struct {
	mu    sync.Mutex
	seed  maphash.Seed
	byJob map[types.UID]requests
}

// NewRequests returns Requests that keeps nothing yet.
func NewRequests() *Requests {
	return &Requests{seed: maphash.MakeSeed(), byJob: map[types.UID]requests{}}
}

// requests are those of a text with this hash, by the claim's UID.
type requests struct {
	hash  uint64
	byUID map[string]Asked
}

// Asked is a part of what a Job asked for on behalf of a claim.
type Asked struct {
	At            types.NamespacedName
	ReclaimPolicy string
	Class         string
	Undo          bool
}

func askedOf(r contract.Request) Asked {
	return Asked{types.NamespacedName{Namespace: r.Namespace, Name: r.Name}, r.ReclaimPolicy, r.Class, r.Undo}
}

// Of returns what a Job asked for on behalf of a claim. It returns false if that cannot be read.
func (r *Requests) Of(job *batchv1.Job, uid string) (Asked, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	text := job.Spec.Template.Annotations[jobs.AnnRequest]
	hash := maphash.String(r.seed, text)
	kept, known := r.byJob[job.UID]
	if !known || kept.hash != hash {
		kept = requests{hash, decodeAsked(text)}
		if len(r.byJob) >= mostRequests {
			clear(r.byJob)
		}
		r.byJob[job.UID] = kept
	}
	asked, has := kept.byUID[uid]
	return asked, has
}

// decodeAsked reads all requests, or none.
func decodeAsked(text string) map[string]Asked {
	all, err := contract.DecodeRequests([]byte(text))
	if err != nil {
		return nil
	}
	out := map[string]Asked{}
	for _, request := range all.Items {
		out[request.UID] = askedOf(request)
	}
	return out
}
