//go:build e2e && storms

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What must be true when a storm is over.

// comesToRest waits until everything is as it is to be.
func (s *storm) comesToRest() {
	s.w.t.Helper()
	began, ctx := time.Now(), s.w.ctx()
	for _, node := range nodes {
		s.w.eventually(toMount, "node"+node+" to be Ready", func(ctx context.Context) error { return readySince(ctx, "node"+node, began.Truncate(time.Second)) })
	}
	var last stock
	err := pollEvery(ctx, 3*time.Second, toRest, func(ctx context.Context) (err error) {
		last, err = takeStock(ctx, s.w.ns)
		// A replica that was killed again and again is restarted after a pause of up to five minutes.
		return errors.Join(err, s.resetStuckVolumes(ctx, last.volumes), s.complaints(last, true), dispatchersReady(ctx))
	})
	if err != nil {
		s.showSome(last)
	}
	s.w.must(err, fmt.Sprintf("%s after the storm", toRest))
	s.w.t.Logf("everything was at rest %.1f s after the storm", time.Since(began).Seconds())
}

// showSome has the claims of the first complaints dumped.
func (s *storm) showSome(found stock) {
	for _, c := range s.claims {
		if s.complaint(c, found, true) != nil && len(s.w.claims) < 5 {
			s.w.claims = append(s.w.claims, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: s.w.ns, Name: c.name, UID: c.uid}})
		}
	}
}

// stock is what exists, in Kubernetes by the UIDs of claims. Nothing of it is asked for claim by
// claim: there are many.
type stock struct {
	claims  map[string]corev1.PersistentVolumeClaim
	pvs     map[string]corev1.PersistentVolume
	pods    map[string]corev1.Pod // by name
	secrets map[string]int
	volumes map[string][]stormVolume
	held    []string
}

// stormVolume is a volume with what shows that Cinder has forgotten what it was doing.
type stormVolume struct {
	ID       string            `json:"id"`
	Name     string            `json:"name"`
	Status   string            `json:"status"`
	Size     int               `json:"size"`
	Metadata map[string]string `json:"metadata"`
	Created  string            `json:"created_at"`
	Updated  string            `json:"updated_at"`
}

func (v stormVolume) uid() string {
	if uid := v.Metadata["flex-provisioner.io/claim-uid"]; uid != "" {
		return uid
	}
	return strings.TrimPrefix(v.Name, "pvc-")
}

func takeStock(ctx context.Context, namespace string) (stock, error) {
	found := stock{
		claims: map[string]corev1.PersistentVolumeClaim{}, pvs: map[string]corev1.PersistentVolume{}, pods: map[string]corev1.Pod{},
		secrets: map[string]int{}, volumes: map[string][]stormVolume{},
	}
	var body struct {
		Volumes []stormVolume `json:"volumes"`
	}
	errs := []error{found.addObjects(ctx, namespace), found.addJobs(ctx), askCinder(ctx, "/volumes/detail?all_tenants=1&limit=1000", &body)}
	for _, v := range body.Volumes {
		found.volumes[v.uid()] = append(found.volumes[v.uid()], v)
	}
	return found, errors.Join(errs...)
}

func (f *stock) addObjects(ctx context.Context, namespace string) error {
	claims, err := kube.CoreV1().PersistentVolumeClaims(namespace).List(ctx, all)
	if err != nil {
		return err
	}
	for _, claim := range claims.Items {
		f.claims[string(claim.UID)] = claim
	}
	pvs, err := kube.CoreV1().PersistentVolumes().List(ctx, all)
	if err != nil {
		return err
	}
	for _, pv := range pvs.Items {
		f.pvs[strings.TrimPrefix(pv.Name, "pvc-")] = pv
	}
	secrets, err := kube.CoreV1().Secrets("").List(ctx, labelled("flex-provisioner.io/claim-uid"))
	if err != nil {
		return err
	}
	for _, secret := range secrets.Items {
		f.secrets[secret.Labels["flex-provisioner.io/claim-uid"]]++
	}
	pods, err := kube.CoreV1().Pods(namespace).List(ctx, all)
	if err != nil {
		return err
	}
	for _, pod := range pods.Items {
		f.pods[pod.Name] = pod
	}
	return nil
}

// addJobs adds the Jobs that are held as records. No other test runs, so that they are of the
// storm.
func (f *stock) addJobs(ctx context.Context) error {
	jobs, err := kube.BatchV1().Jobs(ownNamespace).List(ctx, all)
	if err != nil {
		return err
	}
	f.held = names(slices.DeleteFunc(jobs.Items, released))
	return nil
}

// complaints says what is not as it is to be, the first twelve things of it.
func (s *storm) complaints(found stock, used bool) error {
	var out []error
	if len(found.held) > 0 {
		out = append(out, fmt.Errorf("%d Jobs are held as records, one of them %s", len(found.held), found.held[0]))
	}
	for _, c := range s.claims {
		if err := s.complaint(c, found, used); err != nil {
			out = append(out, fmt.Errorf("%s (%s): %w", c.name, c.uid, err))
		}
	}
	if most := 12; len(out) > most {
		out = append(out[:most], fmt.Errorf("and %d more", len(out)-most))
	}
	return errors.Join(out...)
}

// complaint says what is wrong with a claim: one that is kept is used, or is to be gone as all
// others are.
func (s *storm) complaint(c *stormClaim, found stock, used bool) error {
	if c.isKept() && used {
		return s.mismatch(c, found)
	}
	return c.left(found)
}

// left says what is left of a claim.
func (c *stormClaim) left(found stock) error {
	uid := string(c.uid)
	_, claim := found.claims[uid]
	pv, hasPV := found.pvs[uid]
	if !claim && !hasPV && found.secrets[uid] == 0 && len(found.volumes[uid]) == 0 {
		return nil
	}
	return fmt.Errorf("it is deleted, and is left: claim %t, PV %t (%s), Secrets %d, volumes %v", claim, hasPV, pv.Status.Phase, found.secrets[uid], found.volumes[uid])
}

// mismatch says what a claim that is used lacks, or has too much.
func (s *storm) mismatch(c *stormClaim, found stock) error {
	uid := string(c.uid)
	claim, pv, volumes, size := found.claims[uid], found.pvs[uid], found.volumes[uid], 1
	if c.grows {
		size = 2
	}
	switch result := claim.Annotations["flex-provisioner.io/result"]; {
	case claim.Status.Phase != corev1.ClaimBound || result != "succeeded":
		return fmt.Errorf("it is %s, its result %q after %s attempts: %s", claim.Status.Phase, result,
			claim.Annotations["flex-provisioner.io/attempts"], claim.Annotations["flex-provisioner.io/message"])
	case pv.Status.Phase != corev1.VolumeBound || pv.Spec.Capacity.Storage().Value() != int64(size)<<30:
		return fmt.Errorf("its PV is %s with %s", pv.Status.Phase, pv.Spec.Capacity.Storage())
	case len(volumes) != 1 || volumes[0].Status != "in-use" || volumes[0].Size != size:
		return fmt.Errorf("its volumes are %v", volumes)
	case found.secrets[uid] != 1:
		return fmt.Errorf("it has %d Secrets", found.secrets[uid])
	case found.pods[c.name].Status.Phase != corev1.PodRunning:
		return fmt.Errorf("its pod is %s", found.pods[c.name].Status.Phase)
	}
	return s.reports.of(c, "writer")
}
