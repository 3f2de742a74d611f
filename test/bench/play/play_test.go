package play_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/test/bench/play"
)

func TestStepOfAPod(t *testing.T) {
	now := metav1.Now()
	for name, tt := range map[string]struct {
		pod  corev1.Pod
		want play.Step
	}{
		"that waits for a node":               {corev1.Pod{}, play.Wait},
		"that has a node":                     {onNode(nil), play.Finish},
		"that has succeeded":                  {onNode(func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }), play.Wait},
		"that is deleted before it has ended": {onNode(func(p *corev1.Pod) { p.DeletionTimestamp = &now }), play.Finish},
		"that has ended, is deleted":          {onNode(ended(&now, 30)), play.Remove},
		"that a finalizer holds":              {onNode(ended(&now, 0)), play.Wait},
	} {
		if got := play.Of(&tt.pod); got != tt.want {
			t.Errorf("a pod %s: %v, want %v", name, got, tt.want)
		}
	}
}

// ended changes a pod to one that has ended and is deleted.
func ended(now *metav1.Time, grace int64) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds, p.Status.Phase = now, &grace, corev1.PodFailed
	}
}

func onNode(change func(*corev1.Pod)) corev1.Pod {
	pod := corev1.Pod{Spec: corev1.PodSpec{NodeName: "bench-1"}}
	if change != nil {
		change(&pod)
	}
	return pod
}

// ofOurs returns a pod as the dispatcher makes it, for so many claims.
func ofOurs(t *testing.T, verb contract.Verb, uids ...string) *corev1.Pod {
	t.Helper()
	requests := contract.Requests{Version: contract.Version, Verb: verb}
	var pvs []*corev1.PersistentVolume
	for _, uid := range uids {
		requests.Items = append(requests.Items, contract.Request{UID: uid})
		pvs = append(pvs, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: contract.PVName(uid)}})
	}
	request, err := requests.Encode()
	if err != nil {
		t.Fatal(err)
	}
	var content any = map[string]any{"items": pvs}
	if len(pvs) == 1 {
		content = pvs[0]
	}
	text, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	item := func(path, key string) corev1.DownwardAPIVolumeFile {
		return corev1.DownwardAPIVolumeFile{Path: path, FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['" + key + "']"}}
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "pod", UID: "u", Annotations: map[string]string{"a/request": request, "a/pv": string(text)}},
		Spec: corev1.PodSpec{
			NodeName:   "bench-1",
			Containers: []corev1.Container{{Name: contract.Container, Args: []string{string(verb)}}},
			Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{
				Items: []corev1.DownwardAPIVolumeFile{item("request.json", "a/request"), item("pv.json", "a/pv")},
			}}}},
		},
	}
}

func TestAProvisionWritesThePVOfEachOfItsClaims(t *testing.T) {
	for _, uids := range [][]string{{"one"}, {"one", "two", "three"}} {
		pvs, err := play.PVs(ofOurs(t, contract.Provision, uids...))
		if err != nil {
			t.Fatal(err)
		}
		if len(pvs) != len(uids) {
			t.Fatalf("%d PVs for %v", len(pvs), uids)
		}
		for i, pv := range pvs {
			if pv.Name != "pvc-"+uids[i] || pv.Spec.NFS == nil || pv.Spec.NFS.Path != "/"+pv.Name {
				t.Errorf("the PV of %s: %v", uids[i], pv)
			}
		}
	}
}

func TestOtherPodsWriteNoPV(t *testing.T) {
	helper := onNode(func(p *corev1.Pod) {
		p.Spec.Containers = []corev1.Container{{Name: "helper-pod", Args: []string{"provision"}}}
	})
	for _, pod := range []*corev1.Pod{ofOurs(t, contract.Delete, "one"), &helper} {
		if pvs, err := play.PVs(pod); err != nil || len(pvs) != 0 {
			t.Errorf("%v, %v", pvs, err)
		}
	}
}

func TestAPodWhoseFilesAreBrokenIsAnError(t *testing.T) {
	missing := ofOurs(t, contract.Provision, "one", "two")
	missing.Annotations["a/pv"] = `{"items":[]}`
	broken := ofOurs(t, contract.Provision, "one")
	broken.Annotations["a/request"] = "{"
	for want, pod := range map[string]*corev1.Pod{"0 PVs for 2 requests": missing, "decode the requests": broken} {
		if _, err := play.PVs(pod); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestAFinishedPodHasAnEndedContainerEachAndKeepsThatItWasScheduled(t *testing.T) {
	pod := ofOurs(t, contract.Delete, "one")
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}
	status := play.Finished(pod, metav1.NewTime(time.Unix(5, 0)))
	if status.Phase != corev1.PodSucceeded || len(status.ContainerStatuses) != 1 || status.ContainerStatuses[0].State.Terminated == nil {
		t.Errorf("%v", status)
	}
	if last := status.Conditions[len(status.Conditions)-1]; last.Type != corev1.PodScheduled {
		t.Errorf("the conditions are %v", status.Conditions)
	}
}
