//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// Namespaces of the shipped manifests: that of configs, and that of the dispatchers, their lease
// and their ServiceAccount.
const (
	ownNamespace    = "flex-provisioner"
	systemNamespace = "flex-system"
)

// toBind is how long a claim may take on a busy machine.
const toBind = 90 * time.Second

// claim makes a claim of 1Gi, ReadWriteOnce.
func (w *world) claim(class, name string, change ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	w.t.Helper()
	return w.claimBy(kube, class, name, change...)
}

// claimBy makes it with a client of its own, as another user.
func (w *world) claimBy(user kubernetes.Interface, class, name string, change ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	w.t.Helper()
	made, err := user.CoreV1().PersistentVolumeClaims(w.ns).Create(w.ctx(), wanted(class, name, change...), metav1.CreateOptions{})
	w.must(err, "create the claim "+name)
	w.claims = append(w.claims, made)
	return made
}

// wanted is a claim of 1 GiB, with changes.
func wanted(class, name string, change ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class,
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			},
		},
	}
	for _, c := range change {
		c(claim)
	}
	return claim
}

// forged is what a claim's user would like to be.
func forged(claim *corev1.PersistentVolumeClaim) {
	claim.Annotations = map[string]string{
		"flex-provisioner.io/username": "root", "flex-provisioner.io/groups": "system:masters",
	}
}

func (w *world) deleteClaim(claim *corev1.PersistentVolumeClaim) {
	w.t.Helper()
	err := kube.CoreV1().PersistentVolumeClaims(claim.Namespace).Delete(w.ctx(), claim.Name, metav1.DeleteOptions{})
	w.must(err, "delete the claim "+claim.Name)
}

// look reads the claim from the API server.
func (w *world) look(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	w.t.Helper()
	now, err := lookClaim(w.ctx(), claim)
	w.must(err, "look at the claim")
	return now
}

func lookClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	now, err := kube.CoreV1().PersistentVolumeClaims(claim.Namespace).Get(ctx, claim.Name, metav1.GetOptions{})
	if err == nil && now.UID != claim.UID {
		err = fmt.Errorf("another claim has the name %s", claim.Name)
	}
	return now, err
}

// bound waits until the claim is bound and has the annotations of its result, and returns its PV.
func (w *world) bound(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	w.t.Helper()
	w.eventually(toBind, "the claim "+claim.Name+" to be Bound with the result succeeded", func(ctx context.Context) error {
		return succeeded(ctx, claim)
	})
	return w.pv(claim)
}

func succeeded(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	now, err := lookClaim(ctx, claim)
	if err != nil {
		return err
	}
	if result := now.Annotations["flex-provisioner.io/result"]; now.Status.Phase != corev1.ClaimBound || result != "succeeded" {
		return fmt.Errorf("its phase is %s, its result %q after %q attempts: %s", now.Status.Phase, result,
			now.Annotations["flex-provisioner.io/attempts"], now.Annotations["flex-provisioner.io/message"])
	}
	return nil
}

// failed waits until at least so many attempts have failed.
func (w *world) failed(claim *corev1.PersistentVolumeClaim, attempts int, timeout time.Duration) {
	w.t.Helper()
	w.eventually(timeout, fmt.Sprintf("attempt %d for the claim %s to have failed", attempts, claim.Name), func(ctx context.Context) error {
		now, err := lookClaim(ctx, claim)
		if err != nil {
			return err
		}
		result, said := now.Annotations["flex-provisioner.io/result"], now.Annotations["flex-provisioner.io/attempts"]
		if n, _ := strconv.Atoi(said); result != "failed" || n < attempts {
			return fmt.Errorf("its result is %q after %q attempts", result, said)
		}
		return nil
	})
}

func (w *world) pv(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	w.t.Helper()
	pv, err := kube.CoreV1().PersistentVolumes().Get(w.ctx(), "pvc-"+string(claim.UID), metav1.GetOptions{})
	w.must(err, "look at the claim's PersistentVolume")
	return pv
}

// vanished waits until nothing of a deleted claim is left.
func (w *world) vanished(claim *corev1.PersistentVolumeClaim) {
	w.t.Helper()
	w.eventually(toBind, "nothing to be left of the claim "+claim.Name, func(ctx context.Context) error {
		return nothingLeft(ctx, claim)
	})
}

// events about one object, by its UID.
func events(ctx context.Context, namespace string, uid types.UID) ([]eventsv1.Event, error) {
	list, err := kube.EventsV1().Events(namespace).List(ctx, all)
	if err != nil {
		return nil, fmt.Errorf("list events: %w", err)
	}
	var found []eventsv1.Event
	for _, e := range list.Items {
		if e.Regarding.UID == uid {
			found = append(found, e)
		}
	}
	return found, nil
}

// event waits for an event with this reason about an object, whose note has all these parts.
func (w *world) event(about metav1.Object, reason string, parts ...string) eventsv1.Event {
	w.t.Helper()
	return w.eventWithin(30*time.Second, about, reason, parts...)
}

func (w *world) eventWithin(timeout time.Duration, about metav1.Object, reason string, parts ...string) eventsv1.Event {
	w.t.Helper()
	var match eventsv1.Event
	w.eventually(timeout, fmt.Sprintf("an event %s of %s that says %q", reason, about.GetName(), parts), func(ctx context.Context) error {
		found, err := events(ctx, about.GetNamespace(), about.GetUID())
		if err != nil {
			return err
		}
		var seen []string
		for _, e := range found {
			seen = append(seen, e.Reason+": "+e.Note)
			if e.Reason == reason && containsAll(e.Note, parts) {
				match = e
				return nil
			}
		}
		return fmt.Errorf("there are %q", seen)
	})
	return match
}

func containsAll(text string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}
