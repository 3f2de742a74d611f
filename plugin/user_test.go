package plugin_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
	"github.com/flex-provisioner/flex-provisioner/plugin"
)

// told is an event of the dispatcher about a claim, seen so many seconds after the first.
func told(seconds int, kind, why, message string) corev1.Event {
	return corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: why}, InvolvedObject: corev1.ObjectReference{UID: "1b2c"}, Type: kind, Reason: why, Message: message,
		LastTimestamp: metav1.NewTime(time.Unix(int64(1e9+seconds), 0)), ReportingController: contract.ProvisionerName,
	}
}

// byKubernetes returns an event as one of kube-controller-manager.
func byKubernetes(e corev1.Event) corev1.Event {
	e.ReportingController, e.Source.Component = "persistentvolume-controller", "persistentvolume-controller"
	return e
}

// pendingClaim is a claim without a volume, about which told has events.
func pendingClaim(notes map[string]string) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "1b2c", Annotations: notes}}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	claim.Status.Phase = corev1.ClaimPending
	return claim
}

// toUser explains a claim to a user, who reads these events.
func toUser(t *testing.T, claim *corev1.PersistentVolumeClaim, events ...corev1.Event) *plugin.Report {
	t.Helper()
	client := fake.NewClientset()
	for _, e := range events {
		if _, err := client.CoreV1().Events("shop").Create(t.Context(), &e, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	r, err := plugin.ExplainToUser(t.Context(), client, claim, []string{"get deployments.apps"})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// What a user sees without the permission to read Jobs.
func TestAUserSeesWhatIsInTheWay(t *testing.T) {
	invalid := told(1, corev1.EventTypeWarning, "InvalidConfig", "the config has a fault")
	waits := byKubernetes(told(9, corev1.EventTypeNormal, "ExternalProvisioning", "Waiting for a volume to be created"))
	failed := map[string]string{contract.AnnResult: "failed", contract.AnnMessage: "the pool is full"}
	for name, c := range map[string]struct {
		phase  corev1.PersistentVolumeClaimPhase
		has    string // the claim's capacity
		notes  map[string]string
		events []corev1.Event
		state  plugin.State
		cause  string
	}{
		"bound":                    {corev1.ClaimBound, "1Gi", nil, nil, plugin.OK, ""},
		"bound, and does not grow": {corev1.ClaimBound, "512Mi", nil, []corev1.Event{told(1, corev1.EventTypeWarning, "ExpansionNotSupported", "no")}, plugin.Failed, "an event says: no"},
		"an event of Kubernetes hides no warning": {corev1.ClaimPending, "", nil, []corev1.Event{invalid, waits}, plugin.Failed, "an event says: the config has a fault"},
		"nothing but that event":                  {corev1.ClaimPending, "", nil, []corev1.Event{waits}, plugin.Working, "an event says: Waiting for a volume to be created"},
		"the result of an attempt":                {corev1.ClaimPending, "", failed, []corev1.Event{waits}, plugin.Failed, "the pool is full"},
		"the next attempt is at work":             {corev1.ClaimPending, "", failed, []corev1.Event{told(2, corev1.EventTypeNormal, "Provisioning", "Job")}, plugin.Working, "an event says: Job"},
		"lost":                                    {corev1.ClaimLost, "1Gi", nil, nil, plugin.Failed, "Kubernetes takes the claim for one that has lost its volume"},
		"another reason, and escape codes":        {corev1.ClaimPending, "", nil, []corev1.Event{told(1, corev1.EventTypeWarning, "\x1b[31m", "\x1b[31mno")}, plugin.Failed, "an event says: [31mno"},
	} {
		t.Run(name, func(t *testing.T) {
			claim := pendingClaim(c.notes)
			claim.Status.Phase = c.phase
			if c.has != "" {
				claim.Spec.VolumeName = "pvc-1b2c"
				claim.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(c.has)}
			}
			r := toUser(t, claim, c.events...)
			if r.State != c.state || r.Cause != c.cause || r.State == plugin.Failed && r.Remedy == "" || len(c.events) > 0 && r.Next != "" || r.Reason == "\x1b[31m" {
				t.Errorf("got %+v", r)
			}
		})
	}
}

// A reason of the page whose remedy is the user's own has one that no administrator is needed for.
func TestAUserGetsTheUsersOwnRemedy(t *testing.T) {
	page, err := os.ReadFile("../docs/troubleshoot.md")
	if err != nil {
		t.Fatal(err)
	}
	const ask = "ask an administrator, who sees more: kubectl flex why --namespace=shop data"
	ofVolumes := []string{"ClaimLost", "VolumeResizeFailed", "FileSystemResizeRequired"} // their claim has one
	found := 0
	for _, section := range strings.Split(string(page), "\n## ")[1:] {
		why, text, _ := strings.Cut(section, "\n")
		if !slices.Contains(reason.Headings(), why) {
			continue
		}
		r := toUser(t, pendingClaim(nil), told(1, corev1.EventTypeWarning, why, "no. Remedy: touch PWNED"))
		users := strings.Contains(text, "**Remedy, user") || strings.Contains(text, "*User:*")
		if users = users && !slices.Contains(ofVolumes, why) && why != reason.Stalled; users {
			found++
		}
		if own := r.Remedy != ask; own != users || strings.Contains(r.Remedy, "PWNED") || r.Reason != why {
			t.Errorf("%s: the remedy is %q, and the page has one of the user's own: %t", why, r.Remedy, users)
		}
		bound := pendingClaim(nil)
		bound.Status.Phase, bound.Spec.VolumeName = corev1.ClaimBound, "pvc-1b2c"
		forged := told(1, corev1.EventTypeWarning, why, "forged")
		for _, e := range []corev1.Event{forged, byKubernetes(forged)} {
			if r = toUser(t, bound, e); r.Remedy != ask {
				t.Errorf("%s by %s of a claim with data: the remedy is %q", why, e.ReportingController, r.Remedy)
			}
		}
	}
	if found < 8 {
		t.Errorf("%d reasons of the page are a user's", found)
	}
}

// How the last attempt ended stands in the claim's annotations, with the event and without.
func TestAUserGetsTheRemedyOfTheVerdict(t *testing.T) {
	failed := told(1, corev1.EventTypeWarning, "ProvisioningFailed", "a directory cannot be a raw block device; BadRequest (exit code 65)")
	for code, remedy := range map[string]string{
		"65": "delete the claim, and create it with a request that the storage can serve",
		"73": "free space in the storage",
		"77": "ask an administrator, who sees more: kubectl flex why",
		"":   "ask an administrator, who sees more: kubectl flex why",
	} {
		notes := map[string]string{contract.AnnResult: "failed", contract.AnnExitCode: code}
		for _, events := range [][]corev1.Event{{failed}, nil} {
			r := toUser(t, pendingClaim(notes), events...)
			if !strings.HasPrefix(r.Remedy, remedy) || r.Reason != "ProvisioningFailed" {
				t.Errorf("exit code %q: %+v", code, r)
			}
		}
	}
}

func TestTheRemedyOfARefusedSizeIsAnotherSize(t *testing.T) {
	claim := pendingClaim(nil)
	claim.Status.Phase, claim.Spec.VolumeName = corev1.ClaimBound, "pvc-1b2c"
	claim.Status.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{
		corev1.ResourceStorage: corev1.PersistentVolumeClaimControllerResizeInfeasible,
	}
	r := toUser(t, claim, told(1, corev1.EventTypeWarning, "VolumeResizeFailed", "no"))
	if !strings.HasPrefix(r.Remedy, "request a size in the claim") {
		t.Errorf("the remedy is %q", r.Remedy)
	}
}

// Kubernetes says ProvisioningFailed of a claim whose class does not exist.
func TestAReasonOfOthersIsNoHeading(t *testing.T) {
	said := told(1, corev1.EventTypeWarning, "ProvisioningFailed", `storageclass.storage.k8s.io "godl" not found`)
	r := toUser(t, pendingClaim(nil), byKubernetes(said))
	if r.State != plugin.Failed || r.Reason != "" || !strings.HasPrefix(r.Cause, "an event of persistentvolume-controller says: storageclass") ||
		!strings.HasPrefix(r.Remedy, "if the class of the claim does not exist, delete the claim") {
		t.Errorf("of Kubernetes: %+v", r)
	}
	said.ReportingController = "other.example"
	if r = toUser(t, pendingClaim(nil), said); r.Reason != "" || !strings.HasPrefix(r.Remedy, "ask an administrator") {
		t.Errorf("of another provisioner: %+v", r)
	}
	served := pendingClaim(map[string]string{"volume.kubernetes.io/storage-provisioner": "other.example"})
	if r = toUser(t, served, said); r.Reason != "ProvisioningFailed" {
		t.Errorf("of a dispatcher of another name: %+v", r)
	}
}

func TestTheNextStepOfAWaitingClaimIsItsPod(t *testing.T) {
	waits := told(1, corev1.EventTypeNormal, "WaitForFirstConsumer", "waiting for first consumer to be created before binding")
	if r := toUser(t, pendingClaim(nil), byKubernetes(waits)); r.State != plugin.Working || r.Next != "create a pod that uses the claim" {
		t.Errorf("got %+v", r)
	}
}

// What a user may not read is in the way of nothing while the claim is well.
func TestMissingPermissionsAreNamedOnlyIfSomethingIsInTheWay(t *testing.T) {
	for phase, named := range map[corev1.PersistentVolumeClaimPhase]bool{corev1.ClaimPending: true, corev1.ClaimBound: false} {
		claim := pendingClaim(nil)
		claim.Status = corev1.PersistentVolumeClaimStatus{Phase: phase, Capacity: claim.Spec.Resources.Requests}
		var out strings.Builder
		if err := plugin.Print(&out, time.Now(), toUser(t, claim)); err != nil || strings.Contains(out.String(), "you may not read") != named {
			t.Errorf("%s, %v:\n%s", phase, err, out.String())
		}
	}
}
