package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/pager"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cut"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// Grants answers whether the owner of a namespace allows claims of another namespace to clone a
// claim there.
type Grants interface {
	// Allows reports whether a claim in the namespace to may clone the claim source. It never waits:
	// if again is set, that is not known yet, and is to be asked again then. Its error is transient.
	Allows(ctx context.Context, source types.NamespacedName, to string) (allowed bool, again time.Time, err error)
}

// Reader finds the objects of one claim's UID, in the caches or live. An object that does not exist
// is nil.
type Reader interface {
	// Claim finds a claim by UID. at is where it was last known to be, if anywhere.
	Claim(ctx context.Context, uid types.UID, at types.NamespacedName) (*corev1.PersistentVolumeClaim, error)
	PV(ctx context.Context, name string) (*corev1.PersistentVolume, error)
	Jobs(ctx context.Context, uid types.UID) ([]*batchv1.Job, error)
	Pods(ctx context.Context, job *batchv1.Job) ([]*corev1.Pod, error)
	Node(ctx context.Context, name string) (*corev1.Node, error)
	Nodes(ctx context.Context) ([]*corev1.Node, error)
}

// Cached returns a reader of the caches.
func (c *Caches) Cached() Reader { return cached{c} }

type cached struct{ caches *Caches }

func (c cached) Claim(_ context.Context, uid types.UID, _ types.NamespacedName) (*corev1.PersistentVolumeClaim, error) {
	return c.caches.ClaimOf(uid), nil
}

func (c cached) PV(_ context.Context, name string) (*corev1.PersistentVolume, error) {
	return c.caches.PVs.Named(name), nil
}

func (c cached) Jobs(_ context.Context, uid types.UID) ([]*batchv1.Job, error) {
	return c.caches.Jobs.By(ByUID, string(uid)), nil
}

func (c cached) Pods(_ context.Context, job *batchv1.Job) ([]*corev1.Pod, error) {
	return c.caches.PodsOf(job), nil
}

func (c cached) Node(_ context.Context, name string) (*corev1.Node, error) {
	return c.caches.Nodes.Named(name), nil
}

func (c cached) Nodes(context.Context) ([]*corev1.Node, error) { return c.caches.Nodes.All(), nil }

// Live returns a reader of the API server itself. A cache may be behind the dispatcher's own last
// write or, after a restart, behind what an earlier leader saw. at is where the claim was last
// known to be, and mayHaveJobs are the namespaces in which it may have Jobs. Another namespace in
// which the dispatcher may not list is skipped: otherwise one config namespace that is deleted,
// with its RoleBinding, would stop the classes of all others.
//
// What it reads is cut like the caches, but for Jobs: an undo repeats the whole request of one.
func (c *Caches) Live(at types.NamespacedName, mayHaveJobs ...string) Reader {
	return live{caches: c, client: c.client, provisioner: c.provisioner, namespaces: c.Namespaces(), at: at, mayHaveJobs: mayHaveJobs}
}

type live struct {
	caches                  *Caches
	client                  kubernetes.Interface
	provisioner             string
	namespaces, mayHaveJobs []string
	at                      types.NamespacedName
}

func (l live) Claim(ctx context.Context, uid types.UID, at types.NamespacedName) (*corev1.PersistentVolumeClaim, error) {
	if at.Name == "" {
		at = l.at
	}
	if !isName(at.Name) || !isName(at.Namespace) {
		return nil, nil //nolint:nilnil // nil is the Reader's answer for "does not exist"
	}
	claim, err := l.client.CoreV1().PersistentVolumeClaims(at.Namespace).Get(ctx, at.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && claim.UID != uid {
		return nil, nil //nolint:nilnil // as above
	}
	if err != nil {
		return nil, fmt.Errorf("get the claim %s: %w", at, err)
	}
	return cut.Claim(claim), nil
}

// isName reports whether an object may have this name. What a user or an image wrote may be any
// text, and client-go refuses to ask for one with a slash: a claim would be looked at again and
// again.
func isName(name string) bool { return name != "" && len(content.IsPathSegmentName(name)) == 0 }

func (l live) PV(ctx context.Context, name string) (*corev1.PersistentVolume, error) {
	if !isName(name) {
		return nil, nil //nolint:nilnil // as above
	}
	pv, err := l.client.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // nil is the Reader's answer for "does not exist"
	}
	if err != nil {
		return nil, fmt.Errorf("get the PersistentVolume %s: %w", name, err)
	}
	return cut.PV(pv), nil
}

func (l live) Jobs(ctx context.Context, uid types.UID) ([]*batchv1.Job, error) {
	var out []*batchv1.Job
	for _, ns := range l.namespaces {
		list, err := l.client.BatchV1().Jobs(ns).List(ctx, metav1.ListOptions{LabelSelector: config.SelectRuns(l.provisioner) + "," + jobs.LabelMember + string(uid)})
		if apierrors.IsForbidden(err) && !slices.Contains(l.mayHaveJobs, ns) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list the Jobs of the claim %s in %s: %w", uid, ns, err)
		}
		for i := range list.Items {
			out = append(out, &list.Items[i])
		}
	}
	return l.withoutLabel(ctx, uid, out)
}

// withoutLabel adds the Jobs of a claim that have lost its label, and that the caches find by their
// annotation. A claim once hung whose Job another client had so changed: nothing was decided on the
// caches alone, and the API server showed no Job (TestAJobWithoutTheLabelOfItsClaimIsRecorded).
// They are listed, since the role has no "get".
func (l live) withoutLabel(ctx context.Context, uid types.UID, out []*batchv1.Job) ([]*batchv1.Job, error) {
	for _, known := range l.caches.Jobs.By(ByUID, string(uid)) {
		if slices.ContainsFunc(out, func(job *batchv1.Job) bool { return job.UID == known.UID }) {
			continue
		}
		list, err := l.client.BatchV1().Jobs(known.Namespace).List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, known.Name).String()})
		if err != nil {
			return nil, fmt.Errorf("list the Job %s/%s: %w", known.Namespace, known.Name, err)
		}
		for i := range list.Items {
			if list.Items[i].UID == known.UID {
				out = append(out, &list.Items[i])
			}
		}
	}
	return out, nil
}

func (l live) Pods(ctx context.Context, job *batchv1.Job) ([]*corev1.Pod, error) {
	// Anyone who may create pods there gives any number of them the label with a Job's name.
	list, err := l.client.CoreV1().Pods(job.Namespace).List(ctx, metav1.ListOptions{LabelSelector: config.SelectRuns(l.provisioner) + "," + batchv1.JobNameLabel + "=" + job.Name})
	if err != nil {
		return nil, fmt.Errorf("list the pods of the Job %s/%s: %w", job.Namespace, job.Name, err)
	}
	var out []*corev1.Pod
	for i := range list.Items {
		out = append(out, cut.Pod(&list.Items[i]))
	}
	return runs.PodsOf(job, out), nil
}

func (l live) Node(ctx context.Context, name string) (*corev1.Node, error) {
	if !isName(name) {
		return nil, nil //nolint:nilnil // as above
	}
	node, err := l.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // nil is the Reader's answer for "does not exist"
	}
	if err != nil {
		return nil, fmt.Errorf("get the node %s: %w", name, err)
	}
	return cut.Node(node), nil
}

func (l live) Nodes(ctx context.Context) (out []*corev1.Node, err error) {
	pages := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return l.client.CoreV1().Nodes().List(ctx, o)
	})
	pages.PageSize, pages.PageBufferSize = 50, 0 // a node may have 1.5 MiB
	err = pages.EachListItem(ctx, metav1.ListOptions{}, func(obj runtime.Object) error {
		out = append(out, cut.Node(obj.(*corev1.Node)))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the nodes: %w", err)
	}
	return out, nil
}

// IsRevisionNamedLive asks the API server whether a Job or a PV names a config revision,
// "namespace/name". Jobs name revisions of their own namespace, so another one in which the
// dispatcher may not list is skipped. The lists come in pages: all PVs of a large cluster at once
// would need as much memory as all caches.
func (c *Caches) IsRevisionNamedLive(ctx context.Context, name string) (bool, error) {
	for _, ns := range c.Namespaces() {
		named, err := isNamed(ctx, name, metav1.ListOptions{LabelSelector: config.SelectManaged}, func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return c.client.BatchV1().Jobs(ns).List(ctx, o)
		})
		if apierrors.IsForbidden(err) && !strings.HasPrefix(name, ns+"/") {
			continue
		}
		if err != nil {
			return false, fmt.Errorf("list the Jobs in %s: %w", ns, err)
		}
		if named {
			return true, nil
		}
	}
	named, err := isNamed(ctx, name, metav1.ListOptions{}, func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return c.client.CoreV1().PersistentVolumes().List(ctx, o)
	})
	if err != nil {
		return false, fmt.Errorf("list the PersistentVolumes: %w", err)
	}
	return named, nil
}

// isNamed reports whether an object of a list names a config revision.
func isNamed(ctx context.Context, name string, options metav1.ListOptions, list pager.ListPageFunc) (named bool, err error) {
	err = pager.New(list).EachListItem(ctx, options, func(obj runtime.Object) error {
		m, err := meta.Accessor(obj)
		named = named || err == nil && m.GetAnnotations()[contract.AnnRevision] == name
		return err
	})
	return named, err
}

// AllowsClone reports whether the namespace of a claim allows claims of another namespace to clone
// it, or when that is known at the earliest.
func (c *Caches) AllowsClone(ctx context.Context, source types.NamespacedName, to string) (allowed bool, again time.Time, err error) {
	if c.grants == nil {
		return false, again, nil
	}
	return c.grants.Allows(ctx, source, to)
}
