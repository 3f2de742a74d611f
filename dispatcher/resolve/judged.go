package resolve

import (
	"crypto/sha256"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

// mostJudged is how many judgements are kept, some KiB each, and mostBytes how large they may be
// together. A class has a few, one for each revision in use.
const (
	mostJudged = 1000
	mostBytes  = 32 << 20
)

// Judged keeps what was found in config sources, by their content, and by the objects that hold
// them: an object of a cache never changes, and another one takes its place. Each observation of a
// claim needs that twice, and decoding a source and building the pod to judge it would take most of
// an observation's time.
type Judged struct {
	mu       sync.Mutex
	byObject kept[any]
	bySource kept[[sha256.Size]byte]
}

// kept are judgements that are kept.
type kept[K comparable] struct {
	judgements map[K]Judgement
	bytes      int
}

// Judgement is what was found in a config source.
type Judgement struct {
	Source config.Source
	Config config.Config
	Faults field.ErrorList
	// Said are the faults as they are reported, and size how much is kept with the judgement, in
	// bytes.
	Said string
	size int
	// Damaged is why the source cannot be decoded. Then there is nothing else.
	Damaged error
}

// present, stored and moved are the keys of a ConfigMap and the class that it serves, of a
// revision, and of a ConfigMap that serves what an older revision has made.
type (
	present struct {
		cm    *corev1.ConfigMap
		class *storagev1.StorageClass
	}
	stored struct{ revision *appsv1.ControllerRevision }
	moved  struct {
		cm  *corev1.ConfigMap
		old string
	}
)

// judgePresent judges a ConfigMap and the class that it serves.
func (f *Resolver) judgePresent(cm *corev1.ConfigMap, class *storagev1.StorageClass) Judgement {
	return f.judge(present{cm, class}, func() (config.Source, error) { return config.SourceOf(cm, class), nil })
}

// JudgeStored judges a stored revision.
func (f *Resolver) JudgeStored(revision *appsv1.ControllerRevision) Judgement {
	return f.judge(stored{revision}, func() (config.Source, error) { return config.StoredSource(revision) })
}

// judgeMoved judges a ConfigMap as if it served what an older source has made. Its source keeps the
// name of the older revision.
func (f *Resolver) judgeMoved(cm *corev1.ConfigMap, old config.Source) Judgement {
	return f.judge(moved{cm, old.Revision()}, func() (config.Source, error) {
		return old.From(cm), nil
	})
}

// judge judges the source that an object holds, or returns what was found before.
func (f *Resolver) judge(object any, decode func() (config.Source, error)) Judgement {
	j := f.Judged
	if j == nil {
		j = &Judged{}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	found, known := j.byObject.judgements[object]
	if !known {
		if src, err := decode(); err != nil {
			found = Judgement{Damaged: err}
		} else {
			found = j.ofSource(f, src.Named())
		}
		j.byObject.keep(object, found)
	}
	return found
}

// ofSource parses a source and checks its pod, or returns what was found before.
func (j *Judged) ofSource(f *Resolver, src config.Source) Judgement {
	text := src.Encode()
	key := sha256.Sum256(slices.Concat([]byte(src.Revision()+"\n"), text))
	found, known := j.bySource.judgements[key]
	if !known {
		found.Source = src
		found.Config, found.Faults = config.Parse(src, f.Dispatcher)
		if len(found.Faults) == 0 {
			found.Faults = jobs.Check(found.Config, f.Allowed)
		}
		found.Said = joinFaults(found.Faults)
		found.Config.Warnings = slices.Clip(found.Config.Warnings) // whoever appends to them makes a copy
		found.size = len(text) + len(found.Config.Template) + len(found.Said)
		j.bySource.keep(key, found)
	}
	return found
}

// keep keeps a judgement, and forgets all others when there are too many.
func (k *kept[K]) keep(key K, found Judgement) {
	if k.judgements == nil || len(k.judgements) >= mostJudged || k.bytes+found.size > mostBytes {
		*k = kept[K]{judgements: map[K]Judgement{}}
	}
	k.judgements[key] = found
	k.bytes += found.size
}
